-- A trap for every name of pg_catalog, in the schema that hostile roles may write. Statistics count the calls, even
-- those of transactions that are read-only or rolled back.
DO $hostile$
DECLARE
    name text := pg_catalog.format('%I', pg_catalog.current_database());
    o record;
BEGIN
    EXECUTE 'ALTER DATABASE ' || name || ' SET search_path = public, pg_catalog';
    EXECUTE 'ALTER DATABASE ' || name || ' SET track_functions = ''all''';

    -- Operators: a function of the same types, which calls the original's. IN and ANY call it past the statistics: it calls
    -- what they count.
    FOR o IN SELECT DISTINCT oprname FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace LOOP
        EXECUTE format('CREATE FUNCTION public.%I() RETURNS boolean LANGUAGE plpgsql AS $t$BEGIN RETURN true; END$t$', 'trap operator ' || o.oprname);
    END LOOP;
    FOR o IN
        SELECT op.oprname, op.oprkind = 'l' AS prefix, f.proname, format_type(op.oprleft, NULL) AS l, format_type(op.oprright, NULL) AS r,
            format_type(f.prorettype, NULL) AS result
        FROM pg_operator op JOIN pg_proc f ON f.oid = op.oprcode
        WHERE op.oprnamespace = 'pg_catalog'::regnamespace
    LOOP
        BEGIN
            EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS $t$BEGIN PERFORM public.%I(); RETURN pg_catalog.%I(%s); END$t$',
                'operator ' || o.oprname, CASE WHEN o.prefix THEN o.r ELSE o.l || ', ' || o.r END, o.result,
                'trap operator ' || o.oprname, o.proname, CASE WHEN o.prefix THEN '$1' ELSE '$1, $2' END);
            EXECUTE format('CREATE OPERATOR public.%s (FUNCTION = public.%I, %s RIGHTARG = %s)', o.oprname, 'operator ' || o.oprname,
                CASE WHEN o.prefix THEN '' ELSE 'LEFTARG = ' || o.l || ', ' END, o.r);
        EXCEPTION WHEN OTHERS THEN NULL; -- of a type that plpgsql does not take
        END;
    END LOOP;

    -- Functions that return one value.
    FOR o IN
        SELECT f.proname, pg_get_function_identity_arguments(f.oid) AS args, format_type(f.prorettype, NULL) AS result, f.proretset,
            coalesce((SELECT string_agg('$' || n, ', ' ORDER BY n) FROM generate_series(1, f.pronargs) n), '') AS passed
        FROM pg_proc f
        WHERE f.pronamespace = 'pg_catalog'::regnamespace AND f.prokind = 'f' AND f.provariadic = 0
            AND NOT f.prorettype = ANY ('{internal,trigger,event_trigger,cstring,void}'::regtype[])
            AND (f.proargmodes IS NULL OR f.proretset)
    LOOP
        BEGIN
            EXECUTE format(CASE WHEN o.proretset
                    THEN 'CREATE FUNCTION public.%I(%s) RETURNS SETOF %s LANGUAGE plpgsql AS $t$BEGIN RETURN QUERY SELECT * FROM pg_catalog.%I(%s); END$t$'
                    ELSE 'CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS $t$BEGIN RETURN pg_catalog.%I(%s); END$t$' END,
                o.proname, o.args, o.result, o.proname, o.passed);
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
    END LOOP;

    -- Types: a domain whose check is a trap.
    CREATE FUNCTION public."trap type"("any_type" text) RETURNS boolean LANGUAGE plpgsql AS $t$BEGIN RETURN true; END$t$;
    FOR o IN
        SELECT t.typname FROM pg_type t
        WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typname = ANY
            ('{text,name,oid,xid,xid8,regclass,regproc,regprocedure,regnamespace,regrole,regtype,json,jsonb,uuid,timestamptz,bytea,int8,pg_lsn}'::name[])
    LOOP
        EXECUTE format('CREATE DOMAIN public.%I AS pg_catalog.%I CHECK (public."trap type"(%L))', o.typname, o.typname, o.typname);
    END LOOP;

    -- Relations: a view over the original.
    CREATE FUNCTION public."trap relation"(relation pg_catalog.text) RETURNS boolean LANGUAGE plpgsql AS $t$BEGIN RETURN true; END$t$;
    FOR o IN
        SELECT c.relname FROM pg_class c
        WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v')
    LOOP
        BEGIN
            EXECUTE format('CREATE VIEW public.%I AS SELECT * FROM pg_catalog.%I WHERE public."trap relation"(%L)', o.relname, o.relname, o.relname);
        EXCEPTION WHEN OTHERS THEN NULL; -- columns without a type of their own
        END;
    END LOOP;
END
$hostile$;

-- Aggregates, and functions of any arguments, by hand.
CREATE FUNCTION public."trap count"() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE FUNCTION public."trap max"() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE FUNCTION public."trap array_agg"() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE FUNCTION public.counted(pg_catalog.int8) RETURNS pg_catalog.int8 LANGUAGE plpgsql
    AS 'BEGIN PERFORM public."trap count"(); RETURN pg_catalog.int8inc($1); END';
CREATE AGGREGATE public.count(*) (SFUNC = public.counted, STYPE = pg_catalog.int8, INITCOND = '0');
CREATE FUNCTION public.larger(pg_catalog.int8, pg_catalog.int8) RETURNS pg_catalog.int8 LANGUAGE plpgsql
    AS 'BEGIN PERFORM public."trap max"(); RETURN pg_catalog.int8larger($1, $2); END';
CREATE AGGREGATE public.max(pg_catalog.int8) (SFUNC = public.larger, STYPE = pg_catalog.int8);
CREATE AGGREGATE public.min(pg_catalog.int8) (SFUNC = public.larger, STYPE = pg_catalog.int8);
CREATE FUNCTION public.appended(pg_catalog.anyarray, pg_catalog.anyelement) RETURNS pg_catalog.anyarray LANGUAGE plpgsql
    AS 'BEGIN PERFORM public."trap array_agg"(); RETURN pg_catalog.array_append($1, $2); END';
CREATE AGGREGATE public.array_agg(pg_catalog.anyelement) (SFUNC = public.appended, STYPE = pg_catalog.anyarray, INITCOND = '{}');
CREATE FUNCTION public.format(pg_catalog.text, VARIADIC pg_catalog.text[]) RETURNS pg_catalog.text LANGUAGE plpgsql
    AS 'BEGIN RETURN pg_catalog.format($1, VARIADIC $2); END';
