// The names of signposts that ATen's headers mention.
#pragma once
#include <os/log.h>
#include <stdint.h>
typedef uint64_t os_signpost_id_t;
typedef uint8_t os_signpost_type_t;
