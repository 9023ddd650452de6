"""A model of a picture that takes no time; what its prompt says makes it fail, refuse or take half a minute."""

import tempfile
import time

from cog import BasePredictor, Input, Path


class Predictor(BasePredictor):
    def predict(self, prompt: str = Input(), num_outputs: int = Input(default=1)) -> list[Path]:
        if "broken" in prompt:
            raise RuntimeError("CUDA out of memory")
        if "refused" in prompt:
            raise ValueError("The input or output was flagged as sensitive. (E005)")
        # cog tells its webhook of a line when a later one comes.
        for _ in range(30 if "slow" in prompt else 1):
            print(" 50%|#####     | 5/10", flush=True)
            if "slow" in prompt:
                time.sleep(1)
        print("100%|##########| 10/10", flush=True)
        outputs = []
        for place in range(num_outputs):
            path = Path(tempfile.mkdtemp()) / f"picture-{place}.png"
            path.write_bytes(Path(__file__).with_name("picture.png").read_bytes())
            outputs.append(path)
        return outputs
