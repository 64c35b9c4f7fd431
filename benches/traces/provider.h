// Tracepoints of ROS 2's callbacks and timers, with the names and fields of ros2_tracing.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ros2
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./provider.h"
#if !defined(PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PROVIDER_H
#include <lttng/tracepoint.h>
#include <stdbool.h>
LTTNG_UST_TRACEPOINT_EVENT(ros2, rcl_timer_init, LTTNG_UST_TP_ARGS(const void *, timer, long, period),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, timer_handle, timer) lttng_ust_field_integer(long, period, period)))
LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_timer_callback_added, LTTNG_UST_TP_ARGS(const void *, timer, const void *, callback),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, timer_handle, timer)
                        lttng_ust_field_integer_hex(const void *, callback, callback)))
LTTNG_UST_TRACEPOINT_EVENT(ros2, callback_start, LTTNG_UST_TP_ARGS(const void *, callback, bool, is_intra_process),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, callback, callback)
                        lttng_ust_field_integer(int, is_intra_process, is_intra_process)))
LTTNG_UST_TRACEPOINT_EVENT(ros2, callback_end, LTTNG_UST_TP_ARGS(const void *, callback),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, callback, callback)))
LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_publish, LTTNG_UST_TP_ARGS(const void *, message),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, message, message)))
#endif
#include <lttng/tracepoint-event.h>
