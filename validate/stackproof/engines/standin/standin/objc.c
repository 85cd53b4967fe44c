/* The part of an Objective-C runtime that a host function needs, for code compiled with -fobjc-runtime=gcc.
 *
 * Linux has no such runtime unless a system package brings it; with this one, pip's compiler is enough. It knows
 * classes, inheritance and message sends. It does not know categories, protocols at run time, properties made by the
 * compiler, or exceptions of Objective-C's own. A message that nobody implements ends the process and names the
 * selector, since the return value would be garbage. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct selector {
  const char* name; /* interned when the module is loaded: equal names are equal pointers */
  const char* types;
} selector;
typedef struct method {
  const char* name;
  const char* types;
  void* function;
} method;
typedef struct method_list {
  struct method_list* next;
  int count;
  method methods[];
} method_list;
typedef struct class_ {
  struct class_* metaclass;
  struct class_* parent; /* its name, until the class is linked */
  const char* name;
  long version;
  unsigned long info;
  long instance_size;
  void* instance_variables;
  method_list* methods;
} class_;
typedef struct object {
  class_* class_;
} object;
typedef struct symbol_table {
  unsigned long selector_count;
  selector* selectors;
  unsigned short class_count;
  unsigned short category_count;
  void* definitions[];
} symbol_table;
typedef struct module {
  unsigned long version;
  unsigned long size;
  const char* file;
  symbol_table* symbols;
} module;
typedef struct super_receiver {
  object* receiver;
  class_* parent;
} super_receiver;

enum { NAMES = 4096, CLASSES = 256, LINKED = 1 << 16, UNSUPPORTED_MODULE = 134 };
static const char* names[NAMES];
static class_* classes[CLASSES];
static int class_count;

static void fail(const char* what, const char* name) {
  fprintf(stderr, "stand-in device: %s: %s\n", what, name);
  fflush(stderr);
  _Exit(UNSUPPORTED_MODULE);
}

static const char* interned(const char* name) {
  uint32_t hash = 2166136261u;
  for (const char* c = name; *c; ++c)
    hash = (hash ^ (uint8_t)*c) * 16777619u;
  for (uint32_t probe = 0; probe < NAMES; ++probe) {
    const char** slot = &names[(hash + probe) % NAMES];
    if (!*slot)
      *slot = strdup(name);
    if (!strcmp(*slot, name))
      return *slot;
  }
  fail("too many selectors", name);
  return 0;
}

static void intern_methods(class_* one) {
  for (method_list* list = one->methods; list; list = list->next)
    for (int i = 0; i < list->count; ++i)
      list->methods[i].name = interned(list->methods[i].name);
}

void* objc_lookup_class(const char* name) {
  for (int i = 0; i < class_count; ++i)
    if (!strcmp(classes[i]->name, name))
      return classes[i];
  return 0;
}

void* objc_get_class(const char* name) {
  void* found = objc_lookup_class(name);
  if (!found)
    fail("no such class", name);
  return found;
}

/* Replaces the parent's name by the parent. Parents may be loaded after their children. */
static void link(class_* one) {
  if (one->info & LINKED)
    return;
  const char* parent_name = (const char*)one->parent;
  class_* parent = parent_name ? objc_lookup_class(parent_name) : 0;
  if (parent_name && !parent)
    fail("no such class", parent_name);
  one->info |= LINKED;
  one->parent = parent;
  /* A root's metaclass inherits from the root itself: that is how class objects understand -retain. */
  one->metaclass->parent = parent ? parent->metaclass : one;
}

void __objc_exec_class(module* loaded) {
  symbol_table* table = loaded->symbols;
  for (unsigned long i = 0; i < table->selector_count; ++i)
    if (table->selectors[i].name)
      table->selectors[i].name = interned(table->selectors[i].name);
  for (int i = 0; i < table->class_count; ++i) {
    class_* one = table->definitions[i];
    if (objc_lookup_class(one->name) || !strncmp(one->name, "__ObjC_Protocol", 15))
      continue;
    if (class_count == CLASSES)
      fail("too many classes", one->name);
    intern_methods(one);
    intern_methods(one->metaclass);
    classes[class_count++] = one;
  }
}

static void* find(class_* where, const selector* wanted) {
  for (class_* one = where; one; one = one->parent)
    for (method_list* list = one->methods; list; list = list->next)
      for (int i = 0; i < list->count; ++i)
        if (list->methods[i].name == wanted->name)
          return list->methods[i].function;
  return 0;
}

static void link_all(void) {
  static int linked;
  for (; linked < class_count; ++linked)
    link(classes[linked]);
}

static void* answer_of_nil(void) {
  return 0;
}

void* objc_msg_lookup(object* receiver, const selector* wanted) {
  if (!receiver)
    return (void*)answer_of_nil;
  link_all();
  void* function = find(receiver->class_, wanted);
  if (!function) {
    char text[256];
    snprintf(text, sizeof text, "%s does not implement %s", receiver->class_->name, wanted->name);
    fail("unknown selector", text);
  }
  return function;
}

void* objc_msg_lookup_super(const super_receiver* to, const selector* wanted) {
  link_all();
  void* function = find(to->parent, wanted);
  if (!function)
    fail("unknown selector", wanted->name);
  return function;
}

object* class_createInstance(class_* of, size_t extra) {
  object* made = calloc(1, (size_t)of->instance_size + extra);
  made->class_ = of;
  return made;
}

/* Taken by atexit; startup files that would define it are not linked. */
__attribute__((visibility("hidden"))) void* __dso_handle = &__dso_handle;

/* Objective-C++ functions without Objective-C's own exceptions unwind as C++ does. */
int __gxx_personality_v0(int, int, uint64_t, void*, void*);
int __gnu_objc_personality_v0(int version, int actions, uint64_t kind, void* exception, void* context) {
  return __gxx_personality_v0(version, actions, kind, exception, context);
}
