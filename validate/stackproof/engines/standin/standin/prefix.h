// Compiled once: what every host file includes anyway, and most of the time that compiling one takes.
#include <ATen/native/mps/OperationUtils.h>
#include <torch/library.h>
