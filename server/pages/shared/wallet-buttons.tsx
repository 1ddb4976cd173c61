import { Button } from "./parts.tsx";
import { useWallets, type Wallet } from "./wallets.ts";

interface Props {
  /** Before the wallet's name, such as `Use`. */
  verb: string;
  onChoose: (wallet: Wallet) => unknown;
  main?: boolean;
  disabled?: boolean;
}

/** A button for each wallet of this browser. */
export function WalletButtons({ verb, onChoose, ...rest }: Props) {
  return (
    <div class="choices">
      {useWallets().map((wallet) => (
        <Button key={wallet.name} onClick={() => onChoose(wallet)} text={`${verb} ${wallet.name}`} {...rest} />
      ))}
    </div>
  );
}
