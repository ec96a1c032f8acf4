"""What proposes witnesses to the kernel: prices and flows, and how what they leave could be taken up."""
