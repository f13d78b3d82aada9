// Executes Go's own templates: a list of them as JSON on stdin, what each gives on stdout.
package main

import (
	"encoding/json"
	"os"
	"strings"
	"text/template"
)

type given struct {
	Data      map[string]any `json:"data"`
	Templates []string       `json:"templates"`
}

// whole turns numbers that JSON calls floats into ints, as a program of Go has them.
func whole(value any) any {
	switch known := value.(type) {
	case float64:
		return int(known)
	case []any:
		for at, each := range known {
			known[at] = whole(each)
		}
	case map[string]any:
		for key, each := range known {
			known[key] = whole(each)
		}
	}
	return value
}

func join(between string, list []any) string {
	texts := make([]string, len(list))
	for at, each := range list {
		texts[at] = each.(string)
	}
	return strings.Join(texts, between)
}

func toJSON(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

func execute(text string, data map[string]any) (string, error) {
	functions := template.FuncMap{"join": join, "lower": strings.ToLower, "toJSON": toJSON}
	made, err := template.New("").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return "", err
	}
	var result strings.Builder
	err = made.Execute(&result, data)
	return result.String(), err
}

func main() {
	var request given
	if err := json.NewDecoder(os.Stdin).Decode(&request); err != nil {
		panic(err)
	}
	data := whole(request.Data).(map[string]any)
	answers := make([]map[string]string, len(request.Templates))
	for at, text := range request.Templates {
		result, err := execute(text, data)
		answers[at] = map[string]string{"result": result}
		if err != nil {
			answers[at] = map[string]string{"error": err.Error()}
		}
	}
	json.NewEncoder(os.Stdout).Encode(answers)
}
