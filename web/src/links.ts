// Decides which links open inside the dashboard, and which of the links in the data may be links at all.

/** The address a click leads to, when it is one of our screens and the reader wants it in this tab. */
export function inApp(event: MouseEvent): URL | null {
  if (event.defaultPrevented || event.button !== 0) return null;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return null;
  const anchor = (event.target as Element).closest('a');
  if (anchor === null || anchor.target === '_blank' || anchor.hasAttribute('download')) return null;
  const url = new URL(anchor.href, location.href);
  if (url.hash !== '' && url.pathname === location.pathname) return null;
  return isOurs(url) ? url : null;
}

/** A link in the data: null unless it is http or https, and whether it is one of our own screens. */
export function reportAddress(link: string | null): { href: string; ours: boolean } | null {
  if (link === null || !URL.canParse(link)) return null;
  const url = new URL(link);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null;
  return { href: url.href, ours: isOurs(url) };
}

function isOurs(url: URL): boolean {
  if (url.origin !== location.origin) return false;
  return url.pathname === '/' || url.pathname === '/batches' || url.pathname.startsWith('/batches/');
}
