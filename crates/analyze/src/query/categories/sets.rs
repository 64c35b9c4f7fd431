//! [`SETS`]: the built-in categories of robot software, simulators and middleware.
//!
//! Names of threads and functions are those of the projects' sources: CycloneDDS 0.8 to 0.10, Fast DDS 2.10 to 3.2,
//! ROS 2 Humble to Jazzy, ROS 1 Noetic, Gazebo 6 to 9 and Gazebo Classic 11.

use std::borrow::Cow;

use stepscope_model::FrameKind;

use crate::query::functions::Function;
use crate::query::qualified_name::{own_name, python_function};

/// Categories of one project.
#[derive(Debug)]
pub struct Set {
    /// Its name in lab files.
    pub name: &'static str,
    /// What it is of.
    pub about: &'static str,
    /// Its rules. The first that matches decides.
    pub rules: &'static [BuiltIn],
}

/// How code of a category is recognised. A `*` in a beginning stands for any text.
#[derive(Debug)]
pub struct BuiltIn {
    /// The category.
    pub category: &'static str,
    /// Names of threads, whole; a `*` at the end stands for the rest.
    threads: &'static [&'static str],
    /// Beginnings of own qualified names of functions outside of the kernel.
    functions: &'static [&'static str],
    /// Beginnings of modules' file names.
    modules: &'static [&'static str],
    /// Parts of the paths of Python files.
    python: &'static [&'static str],
    /// Beginnings of names of functions of the kernel.
    kernel: &'static [&'static str],
}

impl BuiltIn {
    const fn of(category: &'static str) -> Self {
        Self { category, threads: &[], functions: &[], modules: &[], python: &[], kernel: &[] }
    }

    const fn threads(self, threads: &'static [&'static str]) -> Self {
        Self { threads, ..self }
    }

    const fn functions(self, functions: &'static [&'static str]) -> Self {
        Self { functions, ..self }
    }

    const fn modules(self, modules: &'static [&'static str]) -> Self {
        Self { modules, ..self }
    }

    const fn python(self, python: &'static [&'static str]) -> Self {
        Self { python, ..self }
    }

    const fn kernel(self, kernel: &'static [&'static str]) -> Self {
        Self { kernel, ..self }
    }

    /// Whether threads of this name are of it.
    pub(super) fn names_thread(&self, name: &str) -> bool {
        self.threads.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *pattern,
        })
    }

    /// Whether this code is of it.
    pub(super) fn covers(&self, code: &Code<'_>) -> bool {
        if code.kernel {
            return self.kernel.iter().any(|start| code.own.starts_with(start));
        }
        self.functions.iter().any(|start| begins(&code.own, start))
            || self.modules.iter().any(|start| code.module.starts_with(start))
            || code.python.is_some_and(|path| self.python.iter().any(|part| path.contains(part)))
    }
}

/// Whether a name begins so.
fn begins(name: &str, start: &str) -> bool {
    match start.split_once('*') {
        Some((first, then)) => name.strip_prefix(first).is_some_and(|rest| rest.contains(then)),
        None => name.starts_with(start),
    }
}

/// What rules ask of a function.
pub(super) struct Code<'a> {
    own: Cow<'a, str>,
    module: &'a str,
    python: Option<&'a str>,
    kernel: bool,
}

impl<'a> Code<'a> {
    pub(super) fn of(function: &'a Function) -> Self {
        Self {
            own: own_name(&function.name),
            module: &function.module,
            python: python_function(&function.name).map(|(_, path)| path),
            kernel: function.kind == FrameKind::Kernel,
        }
    }
}

/// Every set, in the order in which they are asked.
pub static SETS: &[Set] = &[
    Set {
        name: "ros2",
        about: "ROS 2: executors, wait sets, client libraries, rmw, serialisation, parameters, tf, diagnostics",
        rules: &[
            BuiltIn::of("ROS 2 wait set").functions(&[
                "rclcpp::WaitSet",
                "rclcpp::wait_set_policies::",
                "rclcpp::GuardCondition",
                "rclcpp::Executor::wait_for_work",
                "rclcpp::Executor::collect_entities",
                "rclcpp::executors::*::wait_for_work",
                "rclcpp::memory_strategies::",
                "rcl_wait",
                "rmw_wait",
                "rclrs::wait",
            ]),
            BuiltIn::of("ROS 2 executor")
                .functions(&[
                    "rclcpp::Executor",
                    "rclcpp::executors::",
                    "rclcpp::experimental::executors::",
                    "rclcpp::AnyExecutable",
                    "rclcpp::CallbackGroup",
                    "rclcpp::spin",
                    "rclrs::executor",
                    "rclc_executor",
                ])
                .python(&["/rclpy/executors.py", "/rclpy/callback_groups.py"]),
            BuiltIn::of("parameters")
                .functions(&[
                    "rclcpp::Parameter",
                    "rclcpp::node_interfaces::NodeParameters",
                    "rclcpp::AsyncParametersClient",
                    "rclcpp::SyncParametersClient",
                    "rcl_interfaces::",
                    "rcl_yaml_",
                ])
                .python(&["/rclpy/parameter"])
                .modules(&["librcl_yaml_param_parser"]),
            BuiltIn::of("tf")
                .functions(&["tf2::", "tf2_ros::", "tf2_msgs::"])
                .modules(&["libtf2"])
                .python(&["/tf2_ros/"]),
            BuiltIn::of("diagnostics")
                .functions(&["diagnostic_updater::", "diagnostic_msgs::", "diagnostic_aggregator::"])
                .python(&["/diagnostic_updater/"]),
            BuiltIn::of("serialisation")
                .functions(&[
                    "rmw_cyclonedds_cpp::BaseCDRWriter",
                    "rmw_cyclonedds_cpp::CDRWriter",
                    "rmw_cyclonedds_cpp::deserialize",
                    "rmw_cyclonedds_cpp::serialize",
                    "cycser::",
                    "cycdeser",
                    "serdata_rmw_",
                    "rmw_serialize",
                    "rmw_deserialize",
                    "rclcpp::Serialization",
                    "rosidl_typesupport_",
                    "rmw_fastrtps_shared_cpp::TypeSupport",
                ])
                .modules(&["librosidl_typesupport_"]),
            BuiltIn::of("rmw").functions(&["rmw_", "rmw::", "CddsNode"]).modules(&["librmw_"]),
            BuiltIn::of("ROS 2 client library")
                .functions(&["rclcpp::", "rclcpp_", "rcl_", "rclrs::", "rclc_", "libstatistics_collector::"])
                .modules(&["librclcpp", "librcl", "_rclpy"])
                .python(&["/rclpy/"]),
        ],
    },
    Set {
        name: "ros1",
        about: "ROS 1: callback queues, transport, master calls, serialisation, tf",
        rules: &[
            BuiltIn::of("ROS 1 callback queue").functions(&[
                "ros::CallbackQueue",
                "ros::SubscriptionQueue",
                "ros::TimerManager",
                "ros::spin",
                "ros::SingleThreadedSpinner",
                "ros::MultiThreadedSpinner",
                "ros::AsyncSpinner",
            ]),
            BuiltIn::of("ROS 1 transport")
                .functions(&[
                    "ros::Connection",
                    "ros::PollManager",
                    "ros::PollSet",
                    "ros::Transport",
                    "ros::TopicManager",
                    "ros::Publication",
                    "ros::PublisherLink",
                    "ros::SubscriberLink",
                    "ros::TransportPublisherLink",
                    "ros::TransportSubscriberLink",
                    "ros::IntraProcess",
                    "ros::ServiceClientLink",
                ])
                .python(&["/rospy/impl/tcpros", "/rospy/impl/udpros", "/rospy/impl/transport", "/rospy/topics.py"]),
            BuiltIn::of("ROS 1 master calls")
                .functions(&["XmlRpc::", "ros::XMLRPC", "ros::master::"])
                .modules(&["libxmlrpcpp"])
                .python(&["/rosgraph/", "/xmlrpc/", "/rosmaster/"]),
            BuiltIn::of("serialisation")
                .functions(&["ros::serialization::"])
                .modules(&["libroscpp_serialization"])
                .python(&["/genpy/"]),
            BuiltIn::of("tf")
                .functions(&["tf::", "tf2::", "tf2_ros::"])
                .modules(&["libtf.", "libtf2"])
                .python(&["/tf2_ros/", "/tf/"]),
            BuiltIn::of("diagnostics").functions(&["diagnostic_updater::", "diagnostic_msgs::"]),
            BuiltIn::of("ROS 1 client library")
                .functions(&["ros::"])
                .modules(&["libroscpp", "librosconsole", "librostime"])
                .python(&["/rospy/", "/roslib/", "/roslaunch/"]),
        ],
    },
    Set {
        name: "cyclonedds",
        about: "CycloneDDS: receive, transport events, delivery, send, discovery, wait sets, serialisation, shared memory",
        rules: &[
            BuiltIn::of("DDS shared memory")
                .functions(&["iox::", "iox_", "shm_", "ddsi_shm_", "dds_psmx_"])
                .modules(&["libiceoryx"]),
            BuiltIn::of("DDS receive").threads(&["recv", "recvMC", "recvUC"]).functions(&[
                "ddsi_recv_thread",
                "recv_thread",
                "do_packet",
                "handle_submsg_sequence",
                "handle_regular",
                "ddsi_udp_conn_read",
                "ddsi_tcp_conn_read",
            ]),
            BuiltIn::of("DDS transport events").threads(&["tev", "tev.*"]).functions(&[
                "ddsi_xeventthread",
                "xevent_thread",
                "handle_xevk_",
                "handle_individual_xevent",
                "handle_timed_xevent",
                "ddsi_xevent_",
            ]),
            BuiltIn::of("DDS discovery").threads(&["lease"]).functions(&[
                "ddsi_spdp_",
                "ddsi_sedp_",
                "spdp_",
                "sedp_",
                "handle_spdp",
                "handle_sedp",
                "ddsi_handle_spdp",
                "ddsi_handle_sedp",
                "builtins_dqueue_handler",
                "ddsi_builtins_dqueue_handler",
                "ddsi_new_proxy_",
                "new_proxy_",
            ]),
            BuiltIn::of("DDS delivery").threads(&["dq.*"]).functions(&["dqueue_thread", "ddsi_dqueue_", "nn_dqueue_"]),
            BuiltIn::of("DDS send").threads(&["xmit.*"]).functions(&[
                "nn_xpack_",
                "ddsi_xpack_",
                "transmit_sample",
                "ddsi_transmit_",
                "write_sample",
                "ddsi_write_sample",
                "ddsi_udp_conn_write",
            ]),
            BuiltIn::of("DDS garbage collection").threads(&["gc"]).functions(&["gcreq_queue_thread", "ddsi_gcreq_"]),
            BuiltIn::of("DDS wait set").functions(&["dds_waitset_"]),
            BuiltIn::of("serialisation").functions(&[
                "dds_stream_",
                "dds_cdrstream",
                "ddsi_serdata_",
                "ddsi_sertype_",
                "serdata_default_",
                "dds_ostream",
                "dds_istream",
            ]),
            BuiltIn::of("CycloneDDS").functions(&["dds_", "ddsi_", "ddsrt_", "nn_rtps", "nn_rmsg"]).modules(&[
                "libddsc.",
                "libcycloneddsidl",
                "libddscxx.",
            ]),
        ],
    },
    Set {
        name: "fastdds",
        about: "Fast DDS: receive, transport events, delivery, send, discovery, serialisation, shared memory",
        rules: &[
            BuiltIn::of("DDS shared memory").threads(&["dds.shm.*"]).functions(&[
                "eprosima::*rtps::SharedMem",
                "eprosima::*rtps::SharedDir",
                "eprosima::*rtps::DataSharing",
                "eprosima::*rtps::RobustInterprocess",
            ]),
            BuiltIn::of("DDS receive").threads(&["dds.udp.*", "dds.tcp.*"]).functions(&[
                "eprosima::*rtps::MessageReceiver",
                "eprosima::*rtps::UDPChannelResource",
                "eprosima::*rtps::TCPChannelResource",
                "eprosima::*rtps::ReceiverResource",
            ]),
            BuiltIn::of("DDS transport events")
                .threads(&["dds.ev.*"])
                .functions(&["eprosima::*rtps::ResourceEvent", "eprosima::*rtps::TimedEvent"]),
            BuiltIn::of("DDS discovery").functions(&[
                "eprosima::*rtps::PDP",
                "eprosima::*rtps::EDP",
                "eprosima::*rtps::BuiltinProtocols",
                "eprosima::*rtps::ParticipantProxy",
                "eprosima::*rtps::ReaderProxyData",
                "eprosima::*rtps::WriterProxyData",
                "eprosima::*rtps::WLP",
            ]),
            BuiltIn::of("DDS delivery").functions(&[
                "eprosima::*rtps::StatefulReader",
                "eprosima::*rtps::StatelessReader",
                "eprosima::*DataReaderImpl",
                "eprosima::*DataReaderHistory",
                "eprosima::*SubscriberImpl",
                "eprosima::*SubscriberHistory",
            ]),
            BuiltIn::of("DDS send").threads(&["dds.asyn.*"]).functions(&[
                "eprosima::*rtps::FlowController",
                "eprosima::*rtps::RTPSMessageGroup",
                "eprosima::*rtps::StatefulWriter",
                "eprosima::*rtps::StatelessWriter",
                "eprosima::*rtps::AsyncWriterThread",
                "eprosima::*DataWriterImpl",
                "eprosima::*DataWriterHistory",
                "eprosima::*rtps::SenderResource",
                "eprosima::*rtps::UDPTransportInterface::send",
            ]),
            BuiltIn::of("DDS wait set").functions(&[
                "eprosima::*dds::WaitSet",
                "eprosima::*detail::WaitSetImpl",
                "eprosima::*detail::ConditionNotifier",
            ]),
            BuiltIn::of("serialisation").functions(&["eprosima::fastcdr::"]).modules(&["libfastcdr"]),
            BuiltIn::of("Fast DDS").functions(&["eprosima::"]).modules(&["libfastrtps", "libfastdds"]),
        ],
    },
    Set {
        name: "gazebo",
        about: "Gazebo and Gazebo Classic: entities, systems, physics, sensors, rendering, transport",
        rules: &[
            BuiltIn::of("Gazebo entities and components").functions(&[
                "gz::sim::*EntityComponentManager",
                "ignition::gazebo::*EntityComponentManager",
                "gz::sim::*detail::View",
                "gz::sim::*detail::BaseView",
                "ignition::gazebo::*detail::View",
            ]),
            BuiltIn::of("Gazebo scene and state").functions(&[
                "gz::sim::*SceneBroadcaster",
                "ignition::gazebo::*SceneBroadcaster",
                "gz::sim::*RenderUtil",
                "ignition::gazebo::*RenderUtil",
            ]),
            BuiltIn::of("Gazebo physics")
                .functions(&[
                    "gz::physics::",
                    "ignition::physics::",
                    "gz::sim::*systems::Physics",
                    "ignition::gazebo::*systems::Physics",
                    "gazebo::physics::",
                    "dart::",
                ])
                .modules(&[
                    "libdart",
                    "libgz-physics",
                    "libignition-physics",
                    "libgazebo_physics",
                    "libgazebo_ode",
                    "libode",
                ]),
            BuiltIn::of("Gazebo sensors")
                .functions(&["gz::sensors::", "ignition::sensors::", "gazebo::sensors::"])
                .modules(&["libgz-sensors", "libignition-sensors", "libgazebo_sensors"]),
            BuiltIn::of("Gazebo rendering")
                .functions(&["gz::rendering::", "ignition::rendering::", "gazebo::rendering::", "Ogre::"])
                .modules(&["libgz-rendering", "libignition-rendering", "libgazebo_rendering", "libOgre"]),
            BuiltIn::of("Gazebo transport")
                .functions(&["gz::transport::", "ignition::transport::", "gazebo::transport::"])
                .modules(&["libgz-transport", "libignition-transport", "libgazebo_transport", "libzmq"]),
            BuiltIn::of("Gazebo systems").functions(&["gz::sim::*systems::", "ignition::gazebo::*systems::"]),
            BuiltIn::of("SDF").functions(&["sdf::"]).modules(&["libsdformat"]),
            BuiltIn::of("Gazebo").functions(&["gz::", "ignition::", "gazebo::"]).modules(&[
                "libgz-",
                "libignition-",
                "libgazebo",
            ]),
        ],
    },
    Set {
        name: "tokio",
        about: "Tokio, the asynchronous run-time library of Rust",
        rules: &[BuiltIn::of("Tokio").functions(&["tokio::", "mio::"])],
    },
    Set {
        name: "python",
        about: "The interpreter of Python",
        rules: &[BuiltIn::of("python")
            .functions(&["_PyEval_", "PyEval_", "_PyObject_", "PyObject_", "_PyFunction_"])
            .modules(&["libpython"])],
    },
    Set {
        name: "network",
        about: "The kernel's network",
        rules: &[BuiltIn::of("kernel network").kernel(&[
            "__sys_send",
            "__sys_recv",
            "___sys_send",
            "___sys_recv",
            "____sys_send",
            "____sys_recv",
            "sock_",
            "__sock_",
            "sk_",
            "__sk_",
            "skb_",
            "__skb_",
            "__alloc_skb",
            "kfree_skb",
            "consume_skb",
            "udp_",
            "udpv6_",
            "__udp",
            "tcp_",
            "__tcp_",
            "ip_",
            "__ip_",
            "ip6_",
            "ipv6_",
            "inet_",
            "inet6_",
            "unix_stream_",
            "unix_dgram_",
            "unix_poll",
            "net_rx_action",
            "net_tx_action",
            "napi_",
            "__napi_",
            "__netif_receive_skb",
            "netif_",
            "dev_queue_xmit",
            "__dev_queue_xmit",
            "dev_hard_start_xmit",
            "loopback_xmit",
            "process_backlog",
            "nf_hook",
            "nft_do_chain",
        ])],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn category(name: &str, module: &str, kind: FrameKind) -> Option<&'static str> {
        let function = Function { name: name.into(), module: module.into(), owned: false, kind };
        let code = Code::of(&function);
        SETS.iter().flat_map(|set| set.rules).find(|rule| rule.covers(&code)).map(|rule| rule.category)
    }

    #[test]
    fn layers_of_a_robot_graph_are_recognised() {
        let native = |name: &str| category(name, "", FrameKind::Native);
        assert_eq!(native("rclcpp::executors::SingleThreadedExecutor::spin()"), Some("ROS 2 executor"));
        assert_eq!(native("rclcpp::Executor::wait_for_work(std::chrono::nanoseconds)"), Some("ROS 2 wait set"));
        assert_eq!(native("rclcpp::Publisher<sensor_msgs::msg::Imu>::publish"), Some("ROS 2 client library"));
        assert_eq!(native("rmw_publish"), Some("rmw"));
        assert_eq!(native("dds_write_impl"), Some("CycloneDDS"));
        assert_eq!(native("dds_stream_write_sample"), Some("serialisation"));
        assert_eq!(native("eprosima::fastrtps::rtps::ResourceEvent::event_service()"), Some("DDS transport events"));
        assert_eq!(native("eprosima::fastdds::rtps::MessageReceiver::processCDRMsg"), Some("DDS receive"));
        assert_eq!(native("eprosima::fastdds::dds::DomainParticipant::contains_entity"), Some("Fast DDS"));
        assert_eq!(native("ros::CallbackQueue::callAvailable(ros::WallDuration)"), Some("ROS 1 callback queue"));
        assert_eq!(native("gz::sim::v8::EntityComponentManager::Each"), Some("Gazebo entities and components"));
        assert_eq!(native("gz::sim::v8::systems::Physics::Update"), Some("Gazebo physics"));
        assert_eq!(native("tokio::runtime::scheduler::multi_thread::worker::run"), Some("Tokio"));
        assert_eq!(native("my_robot::Planner::plan"), None);
        assert_eq!(
            category("py::spin_once:/opt/ros/rclpy/executors.py", "", FrameKind::Python),
            Some("ROS 2 executor")
        );
    }

    #[test]
    fn code_without_names_is_known_by_its_library_and_kernel_code_by_its_name_only() {
        assert_eq!(category("libddsc.so.0.10.2+0x12", "libddsc.so.0.10.2", FrameKind::Unknown), Some("CycloneDDS"));
        assert_eq!(category("udp_sendmsg", "[kernel.kallsyms]", FrameKind::Kernel), Some("kernel network"));
        assert_eq!(category("udp_sendmsg", "sim", FrameKind::Native), None);
        assert_eq!(category("do_epoll_wait", "[kernel.kallsyms]", FrameKind::Kernel), None);
    }

    #[test]
    fn names_of_sets_differ() {
        let mut names: Vec<&str> = SETS.iter().map(|set| set.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SETS.len());
    }
}
