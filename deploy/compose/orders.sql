-- The table of docker-compose.yaml.
CREATE TABLE public.orders (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    customer   text NOT NULL,
    amount     integer NOT NULL
);
CREATE INDEX ON public.orders (created_at, id);
INSERT INTO public.orders (customer, amount) VALUES ('Ada', 30), ('Grace', 12);
