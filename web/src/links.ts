// Which links open inside the dashboard, and which links in the data are safe.

/** The target of a plain click on a link to a screen of the dashboard; null for all other clicks. */
export function internalUrl(event: MouseEvent): URL | null {
  if (event.defaultPrevented || event.button !== 0) return null;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return null;
  const anchor = (event.target as Element).closest('a');
  // By attributes: those of a link in a chart are not strings.
  const href = anchor?.getAttribute('href') ?? null;
  if (href === null || anchor?.getAttribute('target') === '_blank' || anchor?.hasAttribute('download')) return null;
  const url = new URL(href, location.href);
  return isInternal(url) ? url : null;
}

/** A link in the data; null unless it is http or https with a host. Browsers repair others, such as `https:evil`. */
export function reportLink(link: string | null): string | null {
  return link !== null && /^https?:\/\/[^/\\]/i.test(link) && URL.canParse(link) ? new URL(link).href : null;
}

function isInternal(url: URL): boolean {
  if (url.origin !== location.origin) return false;
  return /^\/($|analysis$|batches($|\/))/.test(url.pathname);
}
