package accuracy

// rows is the table.
var rows = []row{
	curveRow("S1 dense, decode only, bursts", s1, mark{tokens: 10e3, goal: errs{2, 4}}, mark{tokens: 100e3}),
	curveRow("S2 mixture of experts, decode only, bursts", s2, mark{tokens: 10e3, goal: errs{2, 4}}, mark{tokens: 100e3}),
	curveRow("S3 prefill mix, real arrivals", s3, mark{tokens: 10e3}, mark{tokens: 100e3, goal: errs{2, 4}, blind: true}),
	curveRow("S4 prefill mix, bursts", s4, mark{tokens: 10e3}, mark{tokens: 30e3, goal: errs{3, 6}}, mark{tokens: 100e3, goal: errs{1.5, 4}, blind: true}),
	curveRow("S5 speculative, chunks of 4, bursts", s5, mark{tokens: 100e3, goal: errs{2.5, 6}, blind: true}),
	curveRow("S6 short answers, real arrivals", s6, mark{tokens: 100e3, goal: errs{2, 5}, blind: true}),
	curveRow("S7 24 slots, bursts", s7, mark{tokens: 100e3}),
	curveRow("S8 hidden tenant, bursts", s8, mark{tokens: 100e3}),
	curveRow("prefill of another form, real arrivals", wrongForm, mark{tokens: 100e3, goal: errs{3, 8}, blind: true}),
	curveRow("prefill of another form, bursts", wrongFormBursts, mark{tokens: 100e3}),
}
