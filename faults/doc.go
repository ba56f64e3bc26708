// Package faults holds tests alone: they break what lies under a live mount, and its server, and watch
// what readers get.
package faults
