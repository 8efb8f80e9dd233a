DROP TABLE paused_queues;
