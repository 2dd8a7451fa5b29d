//! Serves tansu's broker with its storage in memory, until the end of standard input.

use std::io::{Read, stdin};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::exit;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use tansu_broker::broker::Broker;
use tansu_broker::coordinator::group::administrator::Controller;
use tansu_storage::StorageContainer;
use url::Url;
use uuid::Uuid;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The broker does not tell which port it was given, so it gets one that was free.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port();
    let address = Url::parse(&format!("tcp://127.0.0.1:{port}"))?;
    spawn(move || {
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            sleep(Duration::from_millis(10));
        }
        println!("listening 127.0.0.1:{port}");
        let _ = stdin().read_to_end(&mut Vec::new());
        exit(0);
    });
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let broker = Broker::<Controller<StorageContainer>, StorageContainer>::builder()
            .node_id(1)
            .cluster_id("kipcheck")
            .incarnation_id(Uuid::new_v4())
            .listener(address.clone())
            .advertised_listener(address)
            .storage(Url::parse("memory://kipcheck/")?)
            .silent(true)
            .build()
            .await?;
        broker.main(Instant::now().into()).await?;
        Ok(())
    })
}
