-- The read model: a balance per account, teller and branch.
CREATE SCHEMA IF NOT EXISTS balances;
CREATE TABLE balances.account (id integer PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE balances.teller (id integer PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE balances.branch (id integer PRIMARY KEY, balance bigint NOT NULL);

-- What the source lacks: an order, and the index that gives it. pgbench_history
-- is made by `pgbench -i`.
ALTER TABLE public.pgbench_history ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY;
CREATE UNIQUE INDEX pgbench_history_id ON public.pgbench_history (id);
