-- Kinds of work that an operator has paused on all nodes. A row is deleted when they go on.
CREATE TABLE paused_queues (
    name      TEXT   PRIMARY KEY,
    paused_by TEXT   NOT NULL,
    reason    TEXT   NOT NULL,
    paused_at BIGINT NOT NULL
);
