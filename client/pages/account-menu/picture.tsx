import { useState } from 'preact/hooks';
import { settings } from '../settings.ts';

interface Props {
  name: string;
  src: string;
  /** In pixels. */
  size: number;
  class: string;
}

/** The user's picture, or the first letter of the name if it cannot be shown. */
export function Picture({ name, src, size, class: className }: Props) {
  const [broken, setBroken] = useState<string>();
  if (!src || src === broken) {
    return (
      <span class={className} aria-hidden="true">
        {[...name][0]?.toLocaleUpperCase()}
      </span>
    );
  }
  return (
    <img
      class={className}
      src={nearby(src)}
      alt=""
      width={size}
      height={size}
      // Otherwise the host of the picture, maybe a provider, would learn which user views which page.
      referrerpolicy="no-referrer"
      onError={() => setBroken(src)}
    />
  );
}

/** Files of the service are loaded from the host of this page, because the service may have several hosts. */
const nearby = (address: string) =>
  address.startsWith(`${settings.appUrl}/`) ? address.slice(settings.appUrl.length) : address;
