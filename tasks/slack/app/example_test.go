package app

import "fmt"

func ExampleManifest() {
	manifest, err := Manifest("errand", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(manifest[:52]))
	// Output:
	// {
	//   "display_information": {
	//     "name": "errand",
}
