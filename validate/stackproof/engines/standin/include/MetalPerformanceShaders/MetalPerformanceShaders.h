// The names of MetalPerformanceShaders that ATen's own headers mention.
#pragma once
#include <Metal/Metal.h>
#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
