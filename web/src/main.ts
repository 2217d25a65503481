// Starts the dashboard. Credentials in the address leave it before anything is drawn or asked for.
import { mount } from 'svelte';
import App from './App.svelte';
import { view } from './view.svelte';
import './style.css';

const handedOver = view.takeSignIn();

export default mount(App, { target: document.getElementById('app')!, props: { handedOver } });
