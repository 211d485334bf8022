// Package tables sends statements to the database that has the cursor tables of one schema.
//
// # Nouns
//
//   - DB: the pool and the schema. It quotes names, takes connections, and adds the next step to errors.
//   - Statement: one SQL command with its parameters as text.
//   - Flush: several statements in one network round trip. The server stops at the first one that fails.
//   - Check: an expression in a statement that raises an error unless one row changed as wanted (OneRow, Took).
//   - Parser: reads the values of a result.
//
// # Invariants
//
//   - Each exchange with the server has a deadline.
//   - Each transaction begins with Pin, so no operator or function of another role runs with our rights.
//     The statements of a lease are the exception: they name the schema of each operator and function.
//   - Where a COMMIT travels in the same flush as a change, the change itself raises an error if it did not take
//     place. Otherwise the server would commit the rest of the transaction.
//
// # Left out
//
// What the statements do: packages cursor and operator have them, and their types.
package tables
