// DispatchStubs for the stand-in device. libtorch for Linux stores a stub's function for MPS, but refuses the device
// before it looks there. Its one slot for DispatchStubImpl::get_call_ptr in the table of late-bound functions is pointed
// at a function of ours; where a release of torch has no such slot, ops behind stubs raise libtorch's own error.
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

// What a library says of its late-bound functions.
struct LateBound {
  const ElfW(Rela) * slots = nullptr;
  size_t count = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;

  explicit LateBound(const dl_phdr_info& library) {
    for (int i = 0; i < library.dlpi_phnum; ++i) {
      if (library.dlpi_phdr[i].p_type == PT_DYNAMIC) {
        read((const ElfW(Dyn)*)(library.dlpi_addr + library.dlpi_phdr[i].p_vaddr));
      }
    }
  }
  void read(const ElfW(Dyn) * entry) {
    for (; entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_JMPREL:
          slots = (const ElfW(Rela)*)entry->d_un.d_ptr;
          break;
        case DT_PLTRELSZ:
          count = entry->d_un.d_val / sizeof(ElfW(Rela));
          break;
        case DT_SYMTAB:
          symbols = (const ElfW(Sym)*)entry->d_un.d_ptr;
          break;
        case DT_STRTAB:
          names = (const char*)entry->d_un.d_ptr;
          break;
        default:
          break;
      }
    }
  }
};

int redirect(dl_phdr_info* library, size_t, void*) {
  if (!strstr(library->dlpi_name, "libtorch_cpu")) {
    return 0;
  }
  const LateBound bound(*library);
  for (size_t i = 0; bound.slots && i < bound.count; ++i) {
    const auto& slot = bound.slots[i];
    if (!strcmp(bound.names + bound.symbols[ELF64_R_SYM(slot.r_info)].st_name, kName)) {
      *(void**)(library->dlpi_addr + slot.r_offset) = (void*)with_mps;
    }
  }
  return 1;
}

const bool stubs_know_the_device = [] {
  void* torch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  original = torch ? (GetCallPtr)dlsym(torch, kName) : nullptr;
  return original && dl_iterate_phdr(redirect, nullptr);
}();
} // namespace
