// DispatchStubs: libtorch for Linux refuses the device type MPS before it looks at a stub's mps_dispatch_ptr, although
// the field and its setter are there. Its one PLT slot for DispatchStubImpl::get_call_ptr is pointed at this function.
#include <ATen/native/DispatchStub.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>

#include "objects.h"

namespace {
using Impl = at::native::DispatchStubImpl;
using GetCallPtr = void* (*)(Impl*, c10::DeviceType, void*, void*, void*);
const char kName[] = "_ZN2at6native16DispatchStubImpl12get_call_ptrEN3c1010DeviceTypeEPvS4_S4_";
GetCallPtr original = nullptr;

void* with_mps(Impl* impl, c10::DeviceType device, void* one, void* two, void* three) {
  if (device == c10::DeviceType::MPS) {
    TORCH_CHECK(impl->mps_dispatch_ptr, "stand-in device: no host file registers this DispatchStub for MPS");
    return impl->mps_dispatch_ptr;
  }
  return original(impl, device, one, two, three);
}

int patch(dl_phdr_info* info, size_t, void* patched) {
  if (!strstr(info->dlpi_name, "libtorch_cpu")) {
    return 0;
  }
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = (const ElfW(Dyn)*)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
  }
  const ElfW(Rela)* slots = nullptr;
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  size_t bytes = 0;
  for (; dynamic && dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_JMPREL) slots = (const ElfW(Rela)*)dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_PLTRELSZ) bytes = dynamic->d_un.d_val;
    if (dynamic->d_tag == DT_SYMTAB) symbols = (const ElfW(Sym)*)dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_STRTAB) names = (const char*)dynamic->d_un.d_ptr;
  }
  for (size_t i = 0; slots && i < bytes / sizeof(ElfW(Rela)); ++i) {
    if (!strcmp(names + symbols[ELF64_R_SYM(slots[i].r_info)].st_name, kName)) {
      *(void**)(info->dlpi_addr + slots[i].r_offset) = (void*)with_mps;
      *(int*)patched = 1;
    }
  }
  return 0;
}

const bool stubs_are_known = [] {
  original = (GetCallPtr)dlsym(RTLD_DEFAULT, kName);
  if (!original) {
    void* torch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
    original = torch ? (GetCallPtr)dlsym(torch, kName) : nullptr;
  }
  int patched = 0;
  if (original) {
    dl_iterate_phdr(patch, &patched);
  }
  if (!patched) {
    standin::note("dispatch-stubs", "this torch's DispatchStubs cannot be told of the device");
    fprintf(stderr, "stand-in device: DispatchStubs not patched\n");
  }
  return patched;
}();
} // namespace
