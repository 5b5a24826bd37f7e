// Package demo shows a gateway at work: three simulated GPUs with published curves,
// users who ramp up and spike, batch beside them, and a backend that dies. It says
// what the users got, and how the learned curves compare with the true ones.
//
// The gateway is the whole program, which the caller wires.
package demo
