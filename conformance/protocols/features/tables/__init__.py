"""Decision tables that are played whole: of KIP-584's draft and of clusters with ZooKeeper, and of KRaft."""
