// Entry point. Credentials are removed from the URL before anything is drawn or requested.
import { mount } from 'svelte';
import App from './App.svelte';
import { language } from './text/language';
import { view } from './view.svelte';
import './style.css';

document.documentElement.lang = language;
const fragment = view.takeSignIn();

export default mount(App, { target: document.getElementById('app')!, props: { fragment } });
