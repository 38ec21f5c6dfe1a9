"""What tests of several packages share: the case corpus, servers on loopback, the Node reference packages."""
