// Foundation as far as ATen's MPS sources use it: declarations only, so that a host file can be type-checked where there
// is no Apple SDK. The stand-in device implements the few classes that a kernel's host function needs.
#pragma once
#include <dispatch/dispatch.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __APPLE__
#include <objc/NSObjCRuntime.h>
#include <objc/NSObject.h>
#include <objc/objc.h>
#else
typedef signed char BOOL;
typedef long NSInteger;
typedef unsigned long NSUInteger;
#define YES ((BOOL)1)
#define NO ((BOOL)0)
#define TRUE 1
#define FALSE 0
#define nil nullptr
#define Nil nullptr

static inline uint64_t clock_gettime_nsec_np(int clock) {
  struct timespec now;
  clock_gettime((clockid_t)clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

@protocol NSObject
- (Class)class;
- (instancetype)retain;
- (oneway void)release;
- (instancetype)autorelease;
- (NSUInteger)retainCount;
@end

__attribute__((objc_root_class))
@interface NSObject <NSObject> {
  Class isa;
  int references;
}
+ (instancetype)alloc;
+ (instancetype)new;
- (instancetype)init;
- (id)copy;
- (void)dealloc;
@end
#endif

#ifndef NS_ENUM
#define NS_ENUM(TYPE, NAME) enum NAME : TYPE NAME; enum NAME : TYPE
#endif
#ifndef NS_OPTIONS
#define NS_OPTIONS(TYPE, NAME) TYPE NAME; enum : TYPE
#endif
#define NSUIntegerMax ((NSUInteger) - 1)

typedef double NSTimeInterval;
typedef struct NSRange {
  NSUInteger location;
  NSUInteger length;
} NSRange;
static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) {
  NSRange range = {location, length};
  return range;
}

@class NSString, NSError;
@protocol NSCopying
@end

@interface NSAutoreleasePool : NSObject
- (void)drain;
@end

typedef NS_ENUM(NSUInteger, NSStringEncoding) { NSASCIIStringEncoding = 1, NSUTF8StringEncoding = 4 };
@interface NSString : NSObject <NSCopying>
+ (instancetype)stringWithUTF8String:(const char*)text;
+ (instancetype)stringWithCString:(const char*)text encoding:(NSStringEncoding)encoding;
+ (instancetype)stringWithFormat:(NSString*)format, ...;
- (const char*)UTF8String;
- (NSUInteger)length;
- (BOOL)isEqualToString:(NSString*)other;
@end
// The compiler lays out @"..." as this.
@interface NSConstantString : NSString {
  const char* characters;
  unsigned count;
}
@end

@interface NSValue : NSObject <NSCopying>
@end
@interface NSNumber : NSValue
+ (NSNumber*)numberWithBool:(BOOL)value;
+ (NSNumber*)numberWithChar:(char)value;
+ (NSNumber*)numberWithInt:(int)value;
+ (NSNumber*)numberWithUnsignedInt:(unsigned)value;
+ (NSNumber*)numberWithLong:(long)value;
+ (NSNumber*)numberWithUnsignedLong:(unsigned long)value;
+ (NSNumber*)numberWithLongLong:(long long)value;
+ (NSNumber*)numberWithUnsignedLongLong:(unsigned long long)value;
+ (NSNumber*)numberWithInteger:(NSInteger)value;
+ (NSNumber*)numberWithUnsignedInteger:(NSUInteger)value;
+ (NSNumber*)numberWithFloat:(float)value;
+ (NSNumber*)numberWithDouble:(double)value;
- (int)intValue;
- (NSInteger)integerValue;
- (NSUInteger)unsignedIntegerValue;
- (float)floatValue;
- (double)doubleValue;
@end

@interface NSArray<__covariant Element> : NSObject <NSCopying>
+ (instancetype)array;
+ (instancetype)arrayWithObject:(Element)object;
+ (instancetype)arrayWithObjects:(const Element[])objects count:(NSUInteger)count;
- (NSUInteger)count;
- (Element)objectAtIndex:(NSUInteger)index;
- (Element)objectAtIndexedSubscript:(NSUInteger)index;
@end
@interface NSMutableArray<Element> : NSArray<Element>
+ (instancetype)arrayWithCapacity:(NSUInteger)capacity;
- (void)addObject:(Element)object;
- (void)setObject:(Element)object atIndexedSubscript:(NSUInteger)index;
@end
@interface NSDictionary<__covariant Key, __covariant Value> : NSObject <NSCopying>
+ (instancetype)dictionaryWithObjects:(const Value[])objects forKeys:(const Key[])keys count:(NSUInteger)count;
- (NSUInteger)count;
- (Value)objectForKey:(Key)key;
- (Value)objectForKeyedSubscript:(Key)key;
@end
@interface NSMutableDictionary<Key, Value> : NSDictionary<Key, Value>
+ (instancetype)dictionary;
- (void)setObject:(Value)object forKeyedSubscript:(Key)key;
@end
@interface NSData : NSObject
+ (instancetype)dataWithBytes:(const void*)bytes length:(NSUInteger)length;
@end
@interface NSURL : NSObject
@end
@interface NSError : NSObject
- (NSString*)localizedDescription;
@end
