// What the components share: the state, the texts and formats, and the controls.
export { batches } from './batches.svelte';
export { printing } from './printing.svelte';
export { results } from './results.svelte';
export { seen } from './seen.svelte';
export { session } from './session.svelte';
export { view } from './view.svelte';
export { text } from './text';
export * from './text/format';
export * from './views/shared-text';
export { default as Button } from './components/Button.svelte';
export { default as CheckboxList } from './components/CheckboxList.svelte';
export { default as Field } from './components/Field.svelte';
export { default as Menu } from './components/Menu.svelte';
export { default as Message } from './components/Message.svelte';
