// Entry point of the page. views/ holds the views of the header, and a folder of the same name holds the parts of a
// view; bits/ draws a filter's bits; components/ is shared by views, and lib/ has no components.
import { mount } from "svelte";
import App from "./App.svelte";
import { begin } from "./lib/words.svelte";
import "./typeface.css";
import "./style.css";

void begin().then(() => mount(App, { target: document.getElementById("app")! }));
