// What the stack registers is wrapped in this: the host then knows which op a kernel is launched for, and how each call
// ended. Stands at the top of the registrations that torchgen makes.
#include <cstddef>
#include <exception>
#include <utility>

extern "C" void standin_told_of_call(const char* op, int event);

namespace standin {

template <size_t N>
struct OpName {
  char text[N];
  constexpr OpName(const char (&from)[N]) {
    for (size_t at = 0; at < N; ++at) {
      text[at] = from[at];
    }
  }
};

// The events are those of `enum standin_event`.
class Call {
 public:
  explicit Call(const char* op) : op_(op), raising_(std::uncaught_exceptions()) {
    standin_told_of_call(op_, 0);
  }
  ~Call() {
    standin_told_of_call(op_, std::uncaught_exceptions() > raising_ ? 2 : 1);
  }

 private:
  const char* op_;
  int raising_;
};

template <OpName name, auto function>
struct Counted;
template <OpName name, typename Result, typename... Arguments, Result (*function)(Arguments...)>
struct Counted<name, function> {
  static Result call(Arguments... arguments) {
    Call counted(name.text);
    return function(std::forward<Arguments>(arguments)...);
  }
};

} // namespace standin

