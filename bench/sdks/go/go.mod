module millrace.dev/bench

go 1.19

require millrace.dev/go v0.0.0

replace millrace.dev/go => ../../../sdks/go
