/* A stand-in for ROS 2's libtracetools.so without a tracer: the functions that ros2_tracing exports, with the arguments of Jazzy
 * (tracetools/include/tracetools/tracetools.h). As a tracepoint of LTTng, each tests a variable that a tracer would set. Calls of it are
 * observed as calls of ROS 2's are.
 *
 *   cc -shared -fPIC -O2 -o libtracetools.so tracetools.c
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each has a variable of its own, so functions do not share their code: a probe on one would see calls of the other. */
#define EMPTY(name, ...)                                                    \
  static volatile int state_of_##name;                                      \
  __attribute__((visibility("default"))) void ros_trace_##name(__VA_ARGS__) \
  {                                                                         \
    if (__builtin_expect(state_of_##name, 0))                               \
      __asm__ volatile("" ::: "memory");                                    \
  }

EMPTY(rcl_init, const void *context_handle)
EMPTY(rcl_node_init, const void *node_handle, const void *rmw_handle, const char *node_name, const char *node_namespace)
EMPTY(rmw_publisher_init, const void *rmw_publisher_handle, const uint8_t *gid)
EMPTY(rcl_publisher_init, const void *publisher_handle, const void *node_handle, const void *rmw_publisher_handle,
      const char *topic_name, const size_t queue_depth)
EMPTY(rclcpp_publish, const void *publisher_handle, const void *message)
EMPTY(rclcpp_intra_publish, const void *publisher_handle, const void *message)
EMPTY(rcl_publish, const void *publisher_handle, const void *message)
#ifdef HUMBLE
EMPTY(rmw_publish, const void *message)
#else
EMPTY(rmw_publish, const void *rmw_publisher_handle, const void *message, int64_t timestamp)
#endif
EMPTY(rmw_subscription_init, const void *rmw_subscription_handle, const uint8_t *gid)
EMPTY(rcl_subscription_init, const void *subscription_handle, const void *node_handle, const void *rmw_subscription_handle,
      const char *topic_name, const size_t queue_depth)
EMPTY(rclcpp_subscription_init, const void *subscription_handle, const void *subscription)
EMPTY(rclcpp_subscription_callback_added, const void *subscription, const void *callback)
EMPTY(rmw_take, const void *rmw_subscription_handle, const void *message, int64_t source_timestamp, const bool taken)
EMPTY(rcl_take, const void *message)
EMPTY(rclcpp_take, const void *message)
EMPTY(rcl_service_init, const void *service_handle, const void *node_handle, const void *rmw_service_handle,
      const char *service_name)
EMPTY(rclcpp_service_callback_added, const void *service_handle, const void *callback)
EMPTY(rcl_client_init, const void *client_handle, const void *node_handle, const void *rmw_client_handle,
      const char *service_name)
EMPTY(rcl_timer_init, const void *timer_handle, int64_t period)
EMPTY(rclcpp_timer_callback_added, const void *timer_handle, const void *callback)
EMPTY(rclcpp_timer_link_node, const void *timer_handle, const void *node_handle)
EMPTY(rclcpp_callback_register, const void *callback, const char *function_symbol)
EMPTY(callback_start, const void *callback, const bool is_intra_process)
EMPTY(callback_end, const void *callback)
EMPTY(rclcpp_executor_execute, const void *handle)
EMPTY(rclcpp_ipb_to_subscription, const void *ipb, const void *subscription)
EMPTY(rclcpp_buffer_to_ipb, const void *buffer, const void *ipb)
EMPTY(rclcpp_construct_ring_buffer, const void *buffer, const uint64_t capacity)
EMPTY(rclcpp_ring_buffer_enqueue, const void *buffer, const uint64_t index, const uint64_t size, const bool overwritten)
EMPTY(rclcpp_ring_buffer_dequeue, const void *buffer, const uint64_t index, const uint64_t size)
EMPTY(rclcpp_ring_buffer_clear, const void *buffer)
