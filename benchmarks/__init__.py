"""Models and measurements that compare irc with its peers."""
