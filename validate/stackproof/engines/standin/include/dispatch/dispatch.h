// Dispatch queues as far as ATen uses them; declarations only.
#pragma once
typedef struct dispatch_queue_s* dispatch_queue_t;
typedef void (^dispatch_block_t)(void);
#define DISPATCH_QUEUE_SERIAL nullptr
#ifdef __cplusplus
extern "C" {
#endif
dispatch_queue_t dispatch_queue_create(const char* label, void* attributes);
void dispatch_release(dispatch_queue_t queue);
void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_async(dispatch_queue_t queue, dispatch_block_t block);
#ifdef __cplusplus
}
#endif
