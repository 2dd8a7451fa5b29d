// The shortest testee in Rust, of HeartbeatResponse v0. It needs no crate, so it reads JSON itself; with serde_json
// the second half of this file is not needed.
//   rustc --edition 2021 testee.rs && kipcheck doctor --target "cmd:./testee"
use std::io::{self, BufRead, Write};

// ---- call your library here; return its errors

fn decode(bytes: &[u8]) -> Result<i16, String> {
    let code: [u8; 2] = bytes.try_into().map_err(|_| format!("{} bytes", bytes.len()))?;
    Ok(i16::from_be_bytes(code))
}

fn encode(error_code: i16) -> Vec<u8> {
    error_code.to_be_bytes().to_vec()
}

// ---- the testee protocol

const UNSUPPORTED: &str = r#""status":"unsupported""#;

fn run(step: &Json) -> Result<String, String> {
    if step.text("message") != Some("HeartbeatResponse") || step.number("version") != Some(0) {
        return Ok(UNSUPPORTED.into());
    }
    let bytes = || unhex(step.text("hex").ok_or("no hex")?);
    let written = |code: i16| encode(code).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match step.text("op") {
        Some("decode") => Ok(format!(r#""status":"accepted","value":{{"errorCode":{}}}"#, decode(&bytes()?)?)),
        Some("recode") => Ok(format!(r#""status":"accepted","hex":"{}""#, written(decode(&bytes()?)?))),
        Some("encode") => {
            let code = step.get("value").and_then(|value| value.number("errorCode")).unwrap_or(0);
            let code = i16::try_from(code).map_err(|_| format!("errorCode is {code}"))?;
            Ok(format!(r#""status":"accepted","hex":"{}""#, written(code)))
        }
        _ => Ok(UNSUPPORTED.into()),
    }
}

fn result(step: &Json) -> String {
    let n = step.number("n").unwrap_or(-1);
    let rejected = |why: String| format!(r#""status":"rejected","class":"Error","message":"{}""#, why.escape_default());
    format!(r#"{{"n":{n},{}}}"#, run(step).unwrap_or_else(rejected))
}

fn answer(request: &Json) -> String {
    let kind = request.text("type").unwrap_or("");
    match kind {
        "hello" => concat!(
            r#"{"type":"hello","protocol":1,"name":"skeleton-rust","version":"1","language":"rust","#,
            r#""roles":["codec"],"capabilities":{"HeartbeatResponse":[0,0]}}"#
        ).into(),
        "configure" => match (request.text("role"), request.text("edition")) {
            (Some("codec"), Some(edition)) if edition.starts_with("apache") => {
                r#"{"type":"configure","ok":true}"#.into()
            }
            _ => r#"{"type":"configure","unsupported":"only the role codec, of apache"}"#.into(),
        },
        "batch" => {
            let cases = match request.get("cases") { Some(Json::List(cases)) => cases.as_slice(), _ => &[] };
            let results = cases.iter().map(result).collect::<Vec<_>>().join(",");
            format!(r#"{{"type":"results","id":{},"results":[{results}]}}"#, request.number("id").unwrap_or(-1))
        }
        "bye" => r#"{"type":"bye"}"#.into(),
        _ => r#"{"type":"unsupported"}"#.into(),
    }
}

fn main() {
    for line in io::stdin().lock().lines() {
        let request = Parser { text: &line.expect("UTF-8"), at: 0 }.value().expect("JSON");
        println!("{}", answer(&request));
        io::stdout().flush().expect("stdout");
        if request.text("type") == Some("bye") {
            return;
        }
    }
}

fn unhex(digits: &str) -> Result<Vec<u8>, String> {
    let byte = |at| digits.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    (0..digits.len()).step_by(2).map(|at| byte(at).ok_or_else(|| format!("no hex at {at}"))).collect()
}

// ---- JSON

enum Json {
    Other, // null, true, false
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }
    fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) { Some(Json::Text(text)) => Some(text), _ => None }
    }
    fn number(&self, key: &str) -> Option<i64> {
        match self.get(key) { Some(Json::Number(number)) => Some(*number as i64), _ => None }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest.bytes().next()
    }
    fn value(&mut self) -> Option<Json> {
        match self.peek()? {
            b'"' => self.string().map(Json::Text),
            b'[' => self.items(b']', |parser| parser.value()).map(Json::List),
            b'{' => self.items(b'}', |parser| {
                parser.peek();
                let key = parser.string()?;
                parser.peek().filter(|colon| *colon == b':')?;
                parser.at += 1;
                Some((key, parser.value()?))
            }).map(Json::Object),
            _ => {
                let rest = &self.text[self.at..];
                let word = &rest[..rest.find([',', ']', '}', ' ']).unwrap_or(rest.len())];
                self.at += word.len();
                match word { "null" | "true" | "false" => Some(Json::Other), _ => word.parse().ok().map(Json::Number) }
            }
        }
    }
    fn items<T>(&mut self, end: u8, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut found = Vec::new();
        loop {
            self.at += 1; // the bracket, or the comma
            if found.is_empty() && self.peek()? == end { break; }
            found.push(item(self)?);
            match self.peek()? { b',' => continue, other if other == end => break, _ => return None }
        }
        self.at += 1;
        Some(found)
    }
    fn string(&mut self) -> Option<String> {
        let mut units = Vec::new();
        let mut letters = self.text[self.at..].strip_prefix('"')?.chars();
        loop {
            match letters.next()? {
                '"' => break,
                '\\' => match letters.next()? {
                    'u' => {
                        let digits: String = letters.by_ref().take(4).collect();
                        units.push(u16::from_str_radix(&digits, 16).ok()?);
                    }
                    'n' => units.push(10), 't' => units.push(9), 'r' => units.push(13),
                    'b' => units.push(8), 'f' => units.push(12),
                    other => units.push(other as u16),
                },
                other => units.extend_from_slice(other.encode_utf16(&mut [0; 2])),
            }
        }
        self.at = self.text.len() - letters.as_str().len();
        Some(String::from_utf16_lossy(&units))
    }
}
