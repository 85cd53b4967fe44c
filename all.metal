#include <c10/metal/*.h>
#include <metal_stdlib>
