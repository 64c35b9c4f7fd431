//! Attributes of devices, found by name in a hierarchy of types.

use super::device::Device;

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AttributeValue {
    /// A count.
    Uinteger(u64),
    /// A time, s.
    Time(f64),
    /// A rate, bit/s.
    DataRate(f64),
}

use AttributeValue::{DataRate, Time, Uinteger};

/// An attribute of a type.
struct AttributeInformation {
    name: &'static str,
    /// Reads it from a device.
    accessor: fn(&Device) -> AttributeValue,
}

const fn attribute(name: &'static str, accessor: fn(&Device) -> AttributeValue) -> AttributeInformation {
    AttributeInformation { name, accessor }
}

/// A type of devices.
pub struct TypeId {
    /// The parent type, whose attributes it inherits.
    parent: Option<&'static TypeId>,
    /// Its own attributes.
    attributes: &'static [AttributeInformation],
}

impl TypeId {
    /// A device's attribute of this name.
    #[inline(never)]
    pub fn get_attribute(&self, device: &Device, name: &str) -> Option<AttributeValue> {
        let mut at = Some(self);
        while let Some(type_id) = at {
            for attribute in type_id.attributes {
                if attribute.name == name {
                    return Some((attribute.accessor)(device));
                }
            }
            at = type_id.parent;
        }
        None
    }
}

const OBJECT: TypeId = TypeId {
    parent: None,
    attributes: &[
        attribute("SentPackets", |device| Uinteger(device.sent_packets)),
        attribute("SentBytes", |device| Uinteger(device.sent_bytes)),
        attribute("MaxPackets", |device| Uinteger(device.max_packets)),
    ],
};

const WIFI_MAC: TypeId = TypeId {
    parent: Some(&OBJECT),
    attributes: &[
        attribute("QosSupported", |_| Uinteger(1)),
        attribute("CtsToSelfSupported", |_| Uinteger(0)),
        attribute("DataRate", |device| DataRate(device.data_rate)),
        attribute("GuardInterval", |device| Time(device.guard_interval_s)),
    ],
};

/// The type of all devices here.
pub const REGULAR_WIFI_MAC: TypeId = TypeId {
    parent: Some(&WIFI_MAC),
    attributes: &[
        attribute("HtSupported", |_| Uinteger(1)),
        attribute("VO_MaxAmsduSize", |_| Uinteger(0)),
        attribute("VI_MaxAmsduSize", |_| Uinteger(0)),
        attribute("BE_MaxAmsduSize", |_| Uinteger(7935)),
        attribute("BK_MaxAmsduSize", |_| Uinteger(0)),
        attribute("VO_MaxAmpduSize", |_| Uinteger(0)),
        attribute("VI_MaxAmpduSize", |_| Uinteger(65535)),
        attribute("BE_MaxAmpduSize", |device| Uinteger(device.max_ampdu_size)),
        attribute("BK_MaxAmpduSize", |_| Uinteger(0)),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_inherited() {
        let device = Device::new(3);
        let found = |name| REGULAR_WIFI_MAC.get_attribute(&device, name);
        assert_eq!(found("BE_MaxAmpduSize"), Some(Uinteger(700)));
        assert_eq!(found("DataRate"), Some(DataRate(20e6)));
        assert_eq!(found("MaxPackets"), Some(Uinteger(11)));
        assert_eq!(found("Volume"), None);
        assert_eq!(OBJECT.get_attribute(&device, "DataRate"), None);
    }
}
