//go:build !linux

package main

func makePrivate() {}
