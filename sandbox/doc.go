// Package sandbox takes from a process what it does not need for the rest of its life: files, the
// network, capabilities. What is open stays usable.
package sandbox
