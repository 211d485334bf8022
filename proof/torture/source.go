package main

import (
	"fmt"
	"strings"
)

// source is a table that producers write to, or those of its rows that meet a condition.
type source struct {
	name    string
	table   string // "" = name
	order   string
	where   string   // a condition of SQL; "" = all rows
	with    []column // that producers set in each row beside key and payload, so that it meets the condition
	private bool     // only writes that name it insert here
	sql     string   // makes the table
}

// column of a row, and its value as SQL.
type column struct{ name, value string }

// relation is the name of the table.
func (s source) relation() string {
	if s.table != "" {
		return s.table
	}
	return s.name
}

// rows is what FROM reads.
func (s source) rows() string {
	if s.where == "" {
		return "app." + s.relation()
	}
	return fmt.Sprintf("(SELECT * FROM app.%s WHERE %s) some_of_them", s.relation(), s.where)
}

// position spells the position of a row as the source does, by SQL of our own.
func (s source) position() string {
	if s.order == "id" {
		return `'int:' || lpad(id::text, 20, '0')`
	}
	return `'at.int:' || to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z/"') || lpad(id::text, 20, '0')`
}

func (s source) columns() string {
	if s.order == "id" {
		return "id"
	}
	return "created_at, id"
}

// insert is one statement for so many rows. Its arguments are their keys and payloads, in turn.
func (s source) insert(rows int) string {
	names, fixed := "key, payload", ""
	for _, c := range s.with {
		names, fixed = names+", "+c.name, fixed+", "+c.value
	}
	var values []string
	for i := range rows {
		values = append(values, fmt.Sprintf("($%d, $%d%s)", 2*i+1, 2*i+2, fixed))
	}
	return fmt.Sprintf("INSERT INTO app.%s (%s) VALUES %s", s.relation(), names, strings.Join(values, ", "))
}
