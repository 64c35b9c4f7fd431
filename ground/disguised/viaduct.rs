// defect: the settings of the traffic model are parsed from their JSON text again every fifth tick
// kinds: parsed-each-step, text-parsed-each-step, values-through-text
// guilty: viaduct::settings::parse, viaduct::Model::reload, viaduct::settings::Parser::value
use std::collections::BTreeMap;

mod settings {
    use std::collections::BTreeMap;
    pub enum Value { Number(f64), Text(String), List(Vec<Value>), Object(BTreeMap<String, Value>) }
    pub struct Parser<'a> { bytes: &'a [u8], at: usize }
    impl<'a> Parser<'a> {
        fn space(&mut self) { while self.at < self.bytes.len() && self.bytes[self.at].is_ascii_whitespace() { self.at += 1; } }
        fn text(&mut self) -> String {
            self.at += 1;
            let from = self.at;
            while self.bytes[self.at] != b'"' { self.at += 1; }
            self.at += 1;
            String::from_utf8_lossy(&self.bytes[from..self.at - 1]).into_owned()
        }
        #[inline(never)]
        pub fn value(&mut self) -> Value {
            self.space();
            match self.bytes[self.at] {
                b'{' => {
                    self.at += 1;
                    let mut object = BTreeMap::new();
                    loop {
                        self.space();
                        if self.bytes[self.at] == b'}' { self.at += 1; return Value::Object(object); }
                        if self.bytes[self.at] == b',' { self.at += 1; continue; }
                        let key = self.text();
                        self.space();
                        self.at += 1;
                        object.insert(key, self.value());
                    }
                }
                b'[' => {
                    self.at += 1;
                    let mut list = Vec::new();
                    loop {
                        self.space();
                        if self.bytes[self.at] == b']' { self.at += 1; return Value::List(list); }
                        if self.bytes[self.at] == b',' { self.at += 1; continue; }
                        list.push(self.value());
                    }
                }
                b'"' => Value::Text(self.text()),
                _ => {
                    let from = self.at;
                    while self.at < self.bytes.len() && !b",]} \n".contains(&self.bytes[self.at]) { self.at += 1; }
                    Value::Number(std::str::from_utf8(&self.bytes[from..self.at]).unwrap_or("0").parse().unwrap_or(0.0))
                }
            }
        }
    }
    #[inline(never)]
    pub fn parse(text: &str) -> Value { Parser { bytes: text.as_bytes(), at: 0 }.value() }
}
use settings::Value;

struct Car { at: f64, speed: f64, wanted: f64, lane: usize }

struct Model { text: String, limits: BTreeMap<String, f64>, cars: Vec<Car>, reloads: bool, heat: Vec<f64> }

impl Model {
    #[inline(never)]
    fn reload(&mut self) {
        if let Value::Object(all) = settings::parse(&self.text) {
            if let Some(Value::List(lanes)) = all.get("lanes") {
                for lane in lanes {
                    if let Value::Object(lane) = lane {
                        if let (Some(Value::Text(name)), Some(Value::Number(limit))) = (lane.get("name"), lane.get("limit")) { self.limits.insert(name.clone(), *limit); }
                    }
                }
            }
        }
    }
    #[inline(never)]
    fn follow(&mut self) {
        let limit = self.limits.values().cloned().fold(0.0, f64::max);
        for i in 0..self.cars.len() {
            let ahead = self.cars[(i + 1) % self.cars.len()].at;
            let car = &mut self.cars[i];
            let gap = (ahead - car.at).rem_euclid(5000.0).max(1.0);
            car.speed += 0.1 * (1.0 - (car.speed / car.wanted.min(limit)).powi(4) - (30.0 / gap).powi(2)).clamp(-3.0, 1.5);
            car.speed = car.speed.max(0.0);
            car.at = (car.at + 0.1 * car.speed).rem_euclid(5000.0);
        }
    }
    #[inline(never)]
    fn wear(&mut self) {
        for car in &self.cars {
            let cell = (car.at as usize + car.lane * 31) % self.heat.len();
            self.heat[cell] += (car.speed * 0.01).exp() * 1e-3;
        }
        for heat in &mut self.heat { *heat *= 0.999; }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let reloads = arguments.next().as_deref() == Some("slow");
    let count: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
    let lanes: Vec<String> = (0..400).map(|i| format!("{{\"name\": \"lane_{i}\", \"limit\": {}.5, \"points\": [{}, {}, {}], \"kind\": \"asphalt\"}}", 20 + i % 15, i, i * 2, i * 3)).collect();
    let text = format!("{{\"version\": 3, \"lanes\": [{}]}}", lanes.join(",\n"));
    let cars = (0..1500).map(|i| Car { at: i as f64 * 3.3, speed: 10.0, wanted: 25.0 + (i % 7) as f64, lane: i % 4 }).collect();
    let mut model = Model { text, limits: BTreeMap::new(), cars, reloads, heat: vec![0.0; 5000] };
    model.reload();
    for tick in 0..count {
        if model.reloads && tick % 5 == 4 { model.reload(); }
        model.follow();
        model.wear();
    }
}
