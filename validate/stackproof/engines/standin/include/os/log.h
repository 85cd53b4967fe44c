// The one name of the unified log that ATen's headers mention.
#pragma once
typedef struct os_log_s* os_log_t;
