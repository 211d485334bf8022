package table

import "github.com/jackc/pgx/v5/pgxpool"

// Pool returns the pool from which each read takes a connection (processor.Pooled).
func (s *Source) Pool() *pgxpool.Pool { return s.pool }
