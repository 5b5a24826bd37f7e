package accuracy

import "time"

// rows is the table.
var rows = []row{
	curveRow("S1 dense, decode only, bursts", s1, mark{tokens: 10e3, goal: errs{2, 4}, gate: errs{2.6, 5}, why: few}, mark{tokens: 100e3}),
	curveRow("S2 mixture of experts, decode only, bursts", s2, mark{tokens: 10e3, goal: errs{2, 4}}, mark{tokens: 100e3}),
	curveRow("S3 prefill mix, real arrivals", s3, mark{tokens: 10e3}, mark{tokens: 100e3, goal: errs{2, 4}, blind: true}),
	curveRow("S4 prefill mix, bursts", s4, mark{tokens: 10e3}, mark{tokens: 30e3, goal: errs{3, 6}}, mark{tokens: 100e3, goal: errs{1.5, 4}, blind: true}),
	curveRow("S5 speculative, chunks of 4, bursts", s5, mark{tokens: 100e3, goal: errs{2.5, 6}, blind: true}),
	curveRow("S5 with a first chunk of 4 as well", s5late, mark{tokens: 100e3, why: coalesced}),
	curveRow("S5, the first chunk of 4 as well, counted by the engine at every chunk", s5told, mark{tokens: 100e3, goal: errs{2.5, 6}, blind: true}),
	curveRow("16 tokens a chunk, the first one too", coalesced16, mark{tokens: 100e3, goal: errs{2.5, 6}}),
	curveRow("50 tokens a chunk, the first one too", coalesced50, mark{tokens: 100e3, goal: errs{3, 8}}),
	curveRow("1 to 50 tokens a chunk, by stream, the first one too", coalescing, mark{tokens: 100e3, goal: errs{3, 8}}),
	curveRow("1 to 200 tokens a chunk, by stream, the first one too, long answers", eachItsOwn, mark{tokens: 100e3, goal: errs{3, 8}}),
	curveRow("50 tokens in the first chunk alone", opening50, mark{tokens: 100e3, goal: errs{3, 8}}),
	curveRow("200 tokens a chunk, the first one too, counted by the engine, long answers", told200, mark{tokens: 100e3, goal: errs{3, 8}}),
	curveRow("S6 short answers, real arrivals", s6, mark{tokens: 100e3, goal: errs{2, 5}, blind: true}),
	curveRow("S7 24 slots, bursts", s7, mark{tokens: 100e3}),
	curveRow("S8 hidden tenant, bursts", s8, mark{tokens: 100e3}),
	curveRow("S8 and the engine's own count", s8Seen, mark{tokens: 100e3, gate: errs{4.5, 8}, why: unlike}),
	curveRow("S8, a tenant like our users", s8Like, mark{tokens: 100e3}),
	curveRow("S8, a tenant like our users, and the engine's own count", s8LikeSeen, mark{tokens: 100e3, goal: errs{1.5, 4}}),
	curveRow("prefill of another form, real arrivals", wrongForm, mark{tokens: 100e3, goal: errs{3, 8}, blind: true}),
	curveRow("prefill of another form, bursts", wrongFormBursts, mark{tokens: 100e3}),
	tripledRow,
	mixRow("S4's engine at 1.2 requests/s", mixed, 1.2, 6.7),
	forecastRow("S4", s4, errs{5, 12}),
	forecastRow("S6", s6, errs{}),
	publishedRow,
	unevenRow("steps", stepsOf, 0),
	unevenRow("steps", stepsOf, networkJitter),
	unevenRow("steps", stepsOf, 2*time.Millisecond),
	unevenRow("cliff", cliffOf, 0),
	unevenRow("cliff", cliffOf, networkJitter),
	boundRow("S1, margin 10 %", s1, always(0.10), figure{goal: 98, gate: 4}, figure{goal: 10}, flat),
	boundRow("S1, margin 5 %", s1, always(0.05), figure{goal: 98, gate: 85}, figure{goal: 10}, flat),
	boundRow("S1, margin as adapted", s1, adapted(s1), figure{goal: 98}, figure{goal: 10}, ""),
	boundRow("S2, margin 10 %", s2, always(0.10), figure{goal: 98, gate: 45}, figure{goal: 10}, flat),
	boundRow("S2, margin 5 %", s2, always(0.05), figure{goal: 98}, figure{goal: 10}, ""),
	boundRow("S2, margin as adapted", s2, adapted(s2), figure{goal: 98}, figure{goal: 10}, ""),
	boundRow("S4, margin 10 %", s4, always(0.10), figure{goal: 98, gate: 35}, figure{goal: 10, gate: 20}, flat),
	boundRow("S4, margin 5 %", s4, always(0.05), figure{goal: 98, gate: 85}, figure{goal: 10, gate: 20}, flat),
	boundRow("S4, margin as adapted", s4, adapted(s4), figure{goal: 98, gate: 60}, figure{goal: 10, gate: 20}, flat),
	boundRow("S4, margin 2 %", s4, always(0.02), figure{goal: 98, gate: 95}, figure{goal: 10, gate: 20}, thin),
	marginRow("S1", s1),
	marginRow("S2", s2),
	marginRow("S3", s3),
	marginRow("S4", s4),
	marginRow("S5", s5),
	marginRow("S8", s8),
	coverageRow("S1", s1, 100e3, 85, 0, ""),
	coverageRow("S2", s2, 100e3, 85, 0, ""),
	coverageRow("S4", s4, 100e3, 85, 0, ""),
	coverageRow("S5", s5, 100e3, 85, 0, ""),
	coverageRow("S6", s6, 100e3, 85, 0, ""),
	coverageRow("S8", s8, 100e3, 0, 0, "another tenant is seen by no interval"),
	slowdownRow("S4", s4, 30, 40, ""),
	slowdownRow("S6", s6, 120, 0, ""),
	relapseRow("S1", s1, episode{1.3, 0}, gates{found: 40, relapse: 20, above: 3}, swept),
	relapseRow("S4", s4, episode{1.3, 0}, gates{found: 40, relapse: 40, above: 18}, young),
	relapseRow("S4", s4, episode{1 / 1.3, 0}, gates{found: 60, relapse: 20, above: 3}, young),
	relapseRow("S4", s4, episode{1.3, 5 * time.Minute}, gates{found: 40, relapse: 40, above: 18}, young),
	relapseRow("S4", s4, episode{3, 10 * time.Second}, gates{found: 30, relapse: 20, above: 3}, ""),
	relapseRow("S4", s4, episode{3, 5 * time.Minute}, gates{relapse: 20, above: 4}, overrun),
	relapseRow("S6", s6, episode{3, 10 * time.Second}, gates{found: 30, relapse: 60, above: 3}, ""),
	relapseRow("KV bandwidth", forms[0].known, episode{1.3, 5 * time.Minute}, gates{found: 60, relapse: 20, above: 15}, swept),
	spellRow,
	sharedShiftRow,
	alarmRow("S3", s3, 1, 0, ""),
	alarmRow("S4", s4, 1, 0, ""),
	alarmRow("S6", s6, 1, 0, ""),
	mergeRow("exact n", 0, figure{goal: 1e-7}, figure{goal: 1e-7, gate: 2}, replicas),
	mergeRow("n 200 ms old", 0.2, figure{}, figure{goal: 2, gate: 3}, stale),
	gatewaysRow("short answers in bursts", quickShort, errs{}, errs{}, ""),
	gatewaysRow("steady answers", quickSteady, errs{}, errs{}, ""),
	gatewaysRow("real arrivals", quickTraced, errs{}, errs{}, ""),
	gatewaysRow("S4", s4, errs{}, errs{}, ""),
	gatewaysRow("S6", s6, errs{}, errs{2.8, 6}, replicas),
	usageRow("S4", s4, 2, 0, ""),
	usageRow("S5", s5, 2, 0, ""),
	ttftRow("S1 dense, decode only, bursts", s1, 30e3, 25, false, 0),
	ttftRow("S3 prefill mix, real arrivals", s3, 30e3, 25, true, 0),
	ttftRow("S4 prefill mix, bursts", s4, 30e3, 25, true, 0),
	ttftRow("S6 short answers, real arrivals", s6, 30e3, 25, true, 0),
	ttftRow("S7 24 slots, bursts", s7, 60e3, 25, true, 24),
	formRow("KV bandwidth", forms[0].known, held{floor: 85}, edge),
	formRow(forms[1].name, forms[1].known, held{floor: 80}, burst),
	formRow(forms[2].name, forms[2].known, held{shown: 5.5, p90: 12, spread: 13, above: 14, floor: 65, same: 5.5, same90: 11}, fades),
	formRow(forms[5].name, forms[5].known, held{shown: 4, p90: 10, spread: 5.5, above: 6, floor: 80, same: 4.5, same90: 10}, fades),
	formRow(forms[3].name, forms[3].known, held{}, ""),
	formRow(forms[4].name, forms[4].known, held{above: 6, floor: 80, same: 2.5, same90: 7}, inside),
	formRow(forms[6].name, forms[6].known, held{floor: 85}, burst),
	formRow(apart[0].name, apart[0].known, held{floor: 62}, unseen),
	formRow(apart[1].name, apart[1].known, held{above: 3.2, floor: 80}, burst),
	sampledRow("prefills of ten seconds", longPrefills, held{shown: 3.2, spread: 8, floor: 1}, held{shown: 9, p90: 25, spread: 24, floor: 5}, stopped),
	formRow("S1", s1, held{}, ""),
	formRow("S3", s3, held{above: 6}, halved),
	formRow("S4", s4, held{floor: 80}, edge),
	formRow("S6", s6, held{floor: 80}, edge),
	formRow(holdouts[0].name, holdouts[0].known, held{above: 4, floor: 85}, unseen),
	formRow(holdouts[1].name, holdouts[1].known, held{shown: 6, p90: 11, spread: 10, above: 13, floor: 25, same: 6, same90: 11}, moody),
	formRow(holdouts[2].name, holdouts[2].known, held{}, ""),
	formRow(holdouts[3].name, holdouts[3].known, held{}, ""),
	formRow(holdouts[4].name, holdouts[4].known, held{spread: 8, above: 4, floor: 65, same: 2.5}, gathered),
	formRow(holdouts[5].name, holdouts[5].known, held{floor: 85}, edge),
	ttftRow("S8 hidden tenant, bursts", s8, 30e3, 25, true, 0),
	deliveredRow("S1", s1.setup),
	deliveredRow("S3", s3.setup),
	deliveredRow("S4", s4.setup),
	deliveredRow("KV bandwidth", forms[0].setup),
	deliveredRow(forms[1].name, forms[1].setup),
	deliveredRow(forms[2].name, forms[2].setup),
	deliveredRow(forms[3].name, forms[3].setup),
	deliveredRow(forms[4].name, forms[4].setup),
	deliveredRow(forms[6].name, forms[6].setup),
	deliveredRow(apart[0].name, apart[0].setup),
	deliveredRow(holdouts[3].name, holdouts[3].setup),
	replayRow("recorded from vLLM", "vllm", replayGates{same: errs{3.5, 10.5}, sweep: errs{3, 33}}),
	replayRow("recorded from vLLM with neighbours", "vllm-neighbour", replayGates{sweep: errs{3, 36}}),
	replayRow("recorded from llama.cpp", "llamacpp", replayGates{sweep: errs{9, 31}}),
}

// Why goals are missed.
const (
	unsteady    = "two shared cores are 5 to 10 % faster in one window than in the next, and neighbouring n were visited in other windows"
	engineAlone = "in the sweep the engine has the cores for itself; in the run it shares them with Pacer and its users, and steps took an eighth longer at the same n without prompts"
	early       = "an engine that was known for a minute when it changed: its windows vary by 10 %, so some of the new speed are learned before it is found"
	young       = "faster is believed a tenth at a time; one run of 18 had seen a single burst of 37 s when its engine changed"
	dateless    = "levels of the spell that are hardly visited afterwards hold the bound down for all above them: bins have no dates"
	swept       = "while the load goes from one level to the next the windows are judged by levels that were hardly seen"
	lags        = "what requests bring is known after some tens of them"
	few         = "10k tokens are a burst or two: the median over seeds is 1.3 with 9 and 36 of them, and 2.2 with 18"
	sampled     = "the prompts of one run are not those of the long run"
	edge        = "the margin that 99 of 100 streams need is several times as much in streams: the truth itself, less that margin, has hardly more floors where it is 1 % off"
	burst       = "a few runs saw their highest levels in one burst, and are 3 to 5 % off there"
	inside      = "batches grow in the midst of a bin, whose mean is what is bounded: at the first stream of a size the bound is too high"
	unseen      = "a kernel changes inside a bin, and who is slow makes few tokens; nothing was chosen on this engine"
	stopped     = "a prompt in twenty holds up for ten seconds whoever decodes: the margin follows, and a run has some forty such prompts"
	halved      = "in one run of 36 the prompts of the recording halve, and the curve is shown at those that came since"
	moody       = "some forty spells are a sample: the engine of a run is 4 % faster or slower than that of the long run"
	gathered    = "in the first burst nobody knows how many tokens chunks hold there, and text tells it roughly"
	fades       = "the time of a token bends where the drafts end, and levels beyond were seen for a few hundred steps: so it is with exact counts"
	overrun     = "an engine a third as fast is overrun by this load; one run had seen a single burst of 37 s, and is judged at levels that were never seen"
	flat        = "a margin in speed is several times as much in streams where the step hardly grows with n: at 10 streams of S1 5 % are 2.9 streams, 10 % are 5.9"
	thin        = "a bin that is more than its standard error too slow holds for all above"
	coalesced   = "four tokens in a first chunk are taken for one, as engines send it"
	others      = "who comes and goes while a stream runs is in no curve: by the truth itself it is hardly better"
	replicas    = "each replica cuts rows of its own, and the weight of a row is no sum; the raw bins are equal but for rounding"
	stale       = "between two reports n is off by those who came and went"
	unlike      = "that tenant has no prompts, and is taken to have as many as what passes through Pacer; as shown the curve is right"
	kinked      = "levels of 10 to 40 steps where the table has a kink: neither fit nor correction can know"
)
