package importer

import "strings"

// provider is what LiteLLM's name of a provider is here.
type provider struct {
	kind      string // of the backend; "" = there is none
	url       string // where it is hosted, for kinds that do not know
	needsBase bool   // it is a server of one's own, which has to be named
}

// providers are those of LiteLLM by what a model's name has before its slash.
var providers = map[string]provider{
	"openai":                 {kind: "openai", url: "https://api.openai.com/v1"},
	"text-completion-openai": {kind: "openai", url: "https://api.openai.com/v1"},
	"custom_openai":          {kind: "openai", needsBase: true},
	"openai_like":            {kind: "openai", needsBase: true},
	"litellm_proxy":          {kind: "openai", needsBase: true},
	"lm_studio":              {kind: "openai", needsBase: true},
	"xinference":             {kind: "openai", needsBase: true},
	"llamafile":              {kind: "llamacpp", needsBase: true},
	"hosted_vllm":            {kind: "vllm", needsBase: true},
	"vllm":                   {kind: "vllm", needsBase: true},
	"huggingface":            {kind: "tgi", needsBase: true},
	"ollama":                 {kind: "ollama", url: "http://localhost:11434/v1"},
	"ollama_chat":            {kind: "ollama", url: "http://localhost:11434/v1"},
	"azure":                  {kind: "azure", needsBase: true},
	"azure_text":             {kind: "azure", needsBase: true},
	"azure_ai":               {kind: "azure", needsBase: true},
	"anthropic":              {kind: "anthropic"},
	"anthropic_text":         {kind: "anthropic"},
	"gemini":                 {kind: "gemini"},
	"vertex_ai":              {kind: "vertex"},
	"vertex_ai_beta":         {kind: "vertex"},
	"bedrock":                {kind: "bedrock"},
	"bedrock_converse":       {kind: "bedrock"},
	"mistral":                {kind: "mistral"},
	"codestral":              {kind: "mistral", url: "https://codestral.mistral.ai/v1"},
	"deepseek":               {kind: "deepseek"},
	"cohere":                 {kind: "cohere"},
	"cohere_chat":            {kind: "cohere"},
	"groq":                   {kind: "groq"},
	"together_ai":            {kind: "together"},
	"fireworks_ai":           {kind: "fireworks"},
	"openrouter":             {kind: "openrouter"},
	"xai":                    {kind: "xai"},
	"perplexity":             {kind: "openai", url: "https://api.perplexity.ai"},
	"deepinfra":              {kind: "openai", url: "https://api.deepinfra.com/v1/openai"},
	"cerebras":               {kind: "openai", url: "https://api.cerebras.ai/v1"},
	"sambanova":              {kind: "openai", url: "https://api.sambanova.ai/v1"},
	"nvidia_nim":             {kind: "openai", url: "https://integrate.api.nvidia.com/v1"},
	"moonshot":               {kind: "openai", url: "https://api.moonshot.ai/v1"},
}

// variables are where LiteLLM looks for a key that the file does not have.
var variables = map[string]string{
	"openai": "OPENAI_API_KEY", "text-completion-openai": "OPENAI_API_KEY", "azure": "AZURE_API_KEY", "azure_ai": "AZURE_AI_API_KEY",
	"anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY", "mistral": "MISTRAL_API_KEY", "codestral": "CODESTRAL_API_KEY",
	"deepseek": "DEEPSEEK_API_KEY", "cohere": "COHERE_API_KEY", "cohere_chat": "COHERE_API_KEY", "groq": "GROQ_API_KEY",
	"together_ai": "TOGETHERAI_API_KEY", "fireworks_ai": "FIREWORKS_AI_API_KEY", "openrouter": "OPENROUTER_API_KEY", "xai": "XAI_API_KEY",
	"perplexity": "PERPLEXITYAI_API_KEY", "deepinfra": "DEEPINFRA_API_KEY", "cerebras": "CEREBRAS_API_KEY", "sambanova": "SAMBANOVA_API_KEY",
	"nvidia_nim": "NVIDIA_NIM_API_KEY", "moonshot": "MOONSHOT_API_KEY",
}

// provided splits a model's name as LiteLLM does: a provider that it knows before
// a slash, or a name by which it knows whose it is.
func provided(model string) (name, rest string) {
	if before, after, found := strings.Cut(model, "/"); found {
		return before, after
	}
	for _, of := range []struct{ begin, name string }{
		{"claude", "anthropic"}, {"command", "cohere_chat"}, {"gemini", "vertex_ai"}, {"mistral", "mistral"}, {"deepseek", "deepseek"}, {"grok", "xai"},
	} {
		if strings.HasPrefix(model, of.begin) {
			return of.name, model
		}
	}
	return "openai", model
}
