// The names of MPSGraph that ATen's own headers mention. A host file that builds graphs needs far more and is not
// checked by this: its verdict is "not run", never "failed".
#pragma once
#include <Metal/Metal.h>

typedef NS_ENUM(uint32_t, MPSDataType) {
  MPSDataTypeInvalid = 0,
  MPSDataTypeFloatBit = 0x10000000,
  MPSDataTypeFloat16 = MPSDataTypeFloatBit | 16,
  MPSDataTypeFloat32 = MPSDataTypeFloatBit | 32,
};
typedef NSArray<NSNumber*> MPSShape;
@interface MPSKernel : NSObject
@end
@interface MPSNDArray : NSObject
@end
@interface MPSCommandBuffer : NSObject <MTLCommandBuffer>
- (void)commitAndContinue;
@end
@interface MPSGraph : NSObject
@end
@interface MPSGraphTensor : NSObject <NSCopying>
@end
@interface MPSGraphTensorData : NSObject
@end
@interface MPSGraphOperation : NSObject
@end
@interface MPSGraphExecutable : NSObject
@end
@interface MPSGraphExecutionDescriptor : NSObject
@end
@interface MPSGraphCompilationDescriptor : NSObject
@end
