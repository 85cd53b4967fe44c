/* Changes from one stack to another: the callee-saved registers and nothing else. */
#include "runtime.h"

#if defined(__APPLE__)
#define SYMBOL(NAME) "_" NAME
#else
#define SYMBOL(NAME) NAME
#endif
#if defined(__x86_64__)
__asm__(
    ".text\n.globl " SYMBOL("metal_switch") "\n" SYMBOL("metal_switch") ":\n"
    " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
    " mov %rsp, (%rdi)\n mov %rsi, %rsp\n"
    " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n");
#define SAVED_WORDS 6
#elif defined(__aarch64__)
__asm__(
    ".text\n.globl " SYMBOL("metal_switch") "\n.p2align 2\n" SYMBOL("metal_switch") ":\n"
    " sub sp, sp, #160\n"
    " stp x19, x20, [sp, #0]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n"
    " stp x25, x26, [sp, #48]\n stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n"
    " stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n"
    " mov x9, sp\n str x9, [x0]\n mov sp, x1\n"
    " ldp x19, x20, [sp, #0]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n"
    " ldp x25, x26, [sp, #48]\n ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n"
    " ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n ldp d14, d15, [sp, #144]\n"
    " add sp, sp, #160\n ret\n");
#else
#error "the executor knows x86-64 and arm64"
#endif

/* A stack on which the first switch calls `start`, which never returns. */
void* metal_new_stack(char* stack, u32 bytes, void (*start)(void)) {
  u64 top = ((u64)stack + bytes) & ~15ull;
#if defined(__x86_64__)
  u64* sp = (u64*)top;
  *--sp = 0;
  *--sp = (u64)start;
  sp -= SAVED_WORDS;
  memset(sp, 0, SAVED_WORDS * sizeof *sp);
#else
  u64* sp = (u64*)(top - 160);
  memset(sp, 0, 160);
  sp[11] = (u64)start; /* x30, where the last instruction returns to */
#endif
  return sp;
}
