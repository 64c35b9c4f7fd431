//! Prints a trace: `ctf_print FOLDER [--count]`. Each line has the time in ns, the event and all its fields.

use std::io::{self, BufWriter, Write};

use stepscope_ctf::{Fields, Reader, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: ctf_print FOLDER [--count]")?;
    let mut reader = Reader::open(folder.as_ref())?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut count = 0_u64;
    let prints = std::env::args_os().nth(2).is_none();
    while let Some(event) = reader.next_event() {
        count += 1;
        if !prints {
            continue;
        }
        match event.time_ns() {
            Some(ns) => write!(out, "[{}.{:09}] ", ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000))?,
            None => write!(out, "[?] ")?,
        }
        write!(out, "{}: ", event.name())?;
        let contexts = [event.packet_context(), event.stream_context(), event.event_context(), event.fields()];
        for (at, fields) in contexts.into_iter().filter(|fields| !fields.is_empty()).enumerate() {
            write!(out, "{}", if at == 0 { "" } else { ", " })?;
            print(&mut out, fields)?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    eprintln!("{count} events of {} bytes; {:?}", reader.bytes(), reader.losses());
    Ok(())
}

fn print(out: &mut impl Write, fields: Fields<'_>) -> io::Result<()> {
    write!(out, "{{")?;
    for (at, (name, value)) in fields.iter().enumerate() {
        write!(out, "{}{name} = ", if at == 0 { " " } else { ", " })?;
        print_value(out, value)?;
    }
    write!(out, " }}")
}

fn print_value(out: &mut impl Write, value: Value<'_>) -> io::Result<()> {
    match value {
        Value::Unsigned(value) => write!(out, "{value}"),
        Value::Signed(value) => write!(out, "{value}"),
        Value::Float(value) => write!(out, "{value}"),
        Value::Text(text) => write!(out, "{:?}", String::from_utf8_lossy(text)),
        Value::Enumeration(value) => {
            write!(out, "( {:?} : container = ", value.labels().collect::<Vec<_>>().join(", "))?;
            print_value(out, value.value())?;
            write!(out, " )")
        }
        Value::Struct(fields) => print(out, fields),
        Value::Array(elements) => {
            write!(out, "[")?;
            for (at, element) in elements.iter().enumerate() {
                write!(out, "{}[{at}] = ", if at == 0 { " " } else { ", " })?;
                print_value(out, element)?;
            }
            write!(out, " ]")
        }
        _ => write!(out, "?"),
    }
}
