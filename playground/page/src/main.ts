// The page begins here. views/ holds what the header leads to, and a folder of a view's name its parts; bits/ is the picture
// of a filter's bits; components/ is what several views show, and lib/ what shows nothing.
import { mount } from "svelte";
import App from "./App.svelte";
import "./style.css";

mount(App, { target: document.getElementById("app")! });
