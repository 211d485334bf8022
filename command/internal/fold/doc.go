// Package fold folds text for people to a width. It breaks lines at spaces, and breaks neither a command in backquotes nor
// SQL, since people paste these. Everything that the program prints for people goes through it.
package fold
