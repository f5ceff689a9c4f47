// Package millrace has clients of the Millrace queue and database, and a worker for its tasks.
//
// It uses nothing but the standard library. Requests carry ids of their own, so that a request is
// repeated after a lost connection without being done twice.
package millrace
